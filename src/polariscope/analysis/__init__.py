"""Analysis of arrays, without networks: representations, their regime, metrics, similarity and dimension."""
