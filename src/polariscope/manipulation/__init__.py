"""The attack on the inductive bias: small changes of the data on which variational autoencoders entangle."""
