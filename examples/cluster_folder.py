"""Cluster a folder of images in Python, keep the model, and assign new images with it.

python examples/cluster_folder.py photos/ new-photos/
"""

import sys

from dccm import DCCM

photos, new_photos = sys.argv[1:3]
model = DCCM(n_clusters=12, image_size=64, epochs=50, random_state=0, verbose=True)
model.fit(photos)
model.save("photo-clusters")
print(DCCM.load("photo-clusters").predict(new_photos))
