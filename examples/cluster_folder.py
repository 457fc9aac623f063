"""Cluster a folder of images in Python, keep everything in a run directory, and assign new images by it.

python examples/cluster_folder.py photos/ new-photos/
"""

import sys

import dccm

photos, new_photos = sys.argv[1:3]
run = dccm.cluster(photos, 12, output="photo-clusters", budget="minutes:5", seed=0)
print(run.result.summary())

for warning in run.result.warnings:  # Dead or swollen clusters, and what helps.
    print("Careful:", warning)

new = dccm.read_images(new_photos)  # What cannot be read is left out, and listed.
for name, row in zip(new.names, run.model.predict_proba(new.images)):
    print(f"{name}: cluster {row.argmax()}, {row.max():.0%} sure")
for path, reason in new.skipped:
    print(f"{path} was skipped: {reason}")
