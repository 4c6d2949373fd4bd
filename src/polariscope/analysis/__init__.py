"""What arrays can tell: the representation, its regime, metrics, similarity, dimension. Never a network."""
