"""The attack on the inductive bias: small changes of the data that make VAEs entangle the factors."""
