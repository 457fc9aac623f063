"use strict";
(() => {
  const drawing = document.getElementById("map-points");
  const tip = document.getElementById("map-tip");
  const points = [...drawing.querySelectorAll("circle")];
  // Their titles would be shown a second time.
  const said = points.map((point) => {
    const text = point.firstElementChild.textContent;
    point.firstElementChild.remove();
    return text;
  });
  const places = points.map((point) => [point.cx.baseVal.value, point.cy.baseVal.value]);
  const [picture, words] = tip.children;
  const columns = Number(tip.dataset.columns);
  const wide = Number(tip.dataset.width);
  const high = Number(tip.dataset.height);
  const reach = 24;
  let last = -1;

  function nearest(x, y) {
    let best = -1;
    let least = reach * reach;
    places.forEach(([left, top], number) => {
      const far = (left - x) ** 2 + (top - y) ** 2;
      if (far < least) [best, least] = [number, far];
    });
    return best;
  }

  function show(number) {
    if (last >= 0) points[last].classList.remove("near");
    last = number;
    tip.hidden = number < 0;
    if (number < 0) return;
    points[number].classList.add("near");
    words.textContent = said[number];
    if (columns) {
      const [left, top] = [number % columns, Math.floor(number / columns)];
      picture.firstElementChild.style.transform = `translate(${-left * wide}px, ${-top * high}px)`;
    }
    const scale = drawing.clientWidth / drawing.viewBox.baseVal.width;
    const [x, y] = places[number].map((value) => value * scale);
    const most = drawing.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.max(0, Math.min(most, x - tip.offsetWidth / 2))}px`;
    tip.style.top = y > tip.offsetHeight + 16 ? `${y - tip.offsetHeight - 12}px` : `${y + 12}px`;
  }

  function look(event) {
    const box = drawing.getBoundingClientRect();
    const scale = drawing.viewBox.baseVal.width / box.width;
    show(nearest((event.clientX - box.left) * scale, (event.clientY - box.top) * scale));
  }

  drawing.addEventListener("pointermove", look);
  drawing.addEventListener("pointerdown", look);
  drawing.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && show(-1));
})();
