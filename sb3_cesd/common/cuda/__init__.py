"""Code that only a GPU needs: captured graphs, tensors of arrays that change, shapes that do not depend on data."""
