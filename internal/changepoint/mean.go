package changepoint

// Mean returns the mean of observations of which neighbors may resemble each other,
// the variance of that mean, and how many independent observations would tell as
// much.
func Mean(x []float64) (value, variance, worth float64) {
	m := side(x)
	return m.value, m.variance, m.worth
}
