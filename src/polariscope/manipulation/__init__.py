"""The attack on the inductive bias: small changes of the data that make variational autoencoders entangle."""
