"""Models of other libraries, wrapped into the protocol that analyses use."""
