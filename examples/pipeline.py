"""Images in a scikit-learn pipeline, with a search for the number of clusters that needs no labels.

python examples/pipeline.py
"""

from sklearn.datasets import load_digits
from sklearn.metrics import silhouette_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dccm import ImageClusterer

digits = load_digits()
images = digits.images[:300].reshape(600, -1)  # Rows of numbers are taken as square images.


def separation(pipeline, rows, _=None) -> float:
    """How far apart the clusters are; higher is better."""
    return silhouette_score(rows, pipeline.predict(rows))


pipeline = make_pipeline(
    FunctionTransformer(lambda rows: rows / 16),
    ImageClusterer(method="kmeans", random_state=0),
)
search = GridSearchCV(pipeline, {"imageclusterer__n_clusters": [8, 10, 12]}, scoring=separation, cv=3)
search.fit(images)
print("Best number of clusters:", search.best_params_["imageclusterer__n_clusters"])

# Every method is the same estimator; `transform` gives its features to whatever follows.
vectors = search.best_estimator_[:-1].transform(images)
print("Features:", search.best_estimator_[-1].transform(vectors).shape)
