import { defineConfig } from "vite";

// Names without hashes, and nothing that depends on the machine: building again gives the same bytes.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/dccm/gallery/static",
    emptyOutDir: true,
    modulePreload: false,
    target: "es2022",
    rollupOptions: {
      output: { entryFileNames: "app.js", chunkFileNames: "[name].js", assetFileNames: "[name][extname]" },
    },
  },
});
