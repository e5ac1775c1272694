"""Looks into a fitted model, as the paper's figures take them: a model and windows in, plain data (for JSON) out."""
