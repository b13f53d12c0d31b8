"""Pure numerics: statistics, special functions, fitted forms and their prediction intervals."""
