"""A model as operators of ONNX: what is done to images first, the networks, and what is made of their answers."""
