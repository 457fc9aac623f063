"""Cluster a folder of pictures by several processes of this machine, or of several.

    torchrun --nproc-per-node 2 several_processes.py photos/

All processes call the same function and learn one model together; each gets the result. Anything that should happen
once is done by the process with the number 0. Without torchrun the script runs as well, as a single process.
"""

import os
import sys

import dccm


def main() -> None:
    folder = sys.argv[1]
    finished = dccm.cluster(
        folder,
        3,
        output="clustered-together",
        image_size=16,
        settings={"epochs": 2, "starts": 1, "batch_size": 60, "mini_batch": 20},
    )
    # Every process can go on with the model, on pictures of its own, for example.
    probabilities = finished.model.predict_proba(finished.image_set.images)
    if int(os.environ.get("RANK", 0)) == 0:
        print(f"{os.environ.get('WORLD_SIZE', 1)} processes, {len(probabilities)} pictures")
        for path, row in list(zip(finished.image_set.names, probabilities, strict=True))[:5]:
            print(f"{path}: cluster {row.argmax()}, {row.max():.0%} sure")


if __name__ == "__main__":
    main()
