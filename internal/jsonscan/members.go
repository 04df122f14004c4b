package jsonscan

// Members passes the members of the object at b[i], each with its key as it is between the
// quotes and its value as it stands, and returns where the object ends. What a member holds is
// not looked into.
func Members(b []byte, i int, yield func(key, value []byte)) (next int, err error) {
	if i >= len(b) {
		return i, ErrShort
	}
	if b[i] != '{' {
		return i, ErrSyntax
	}
	if i = Space(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		key, _, k, err := String(b, Space(b, i))
		if err != nil {
			return k, err
		}
		if k = Space(b, k); k >= len(b) {
			return k, ErrShort
		}
		if b[k] != ':' {
			return k, ErrSyntax
		}
		k = Space(b, k+1)
		end, err := Value(b, k)
		if err != nil {
			return end, err
		}
		yield(key, b[k:end])
		if i = Space(b, end); i >= len(b) {
			return i, ErrShort
		}
		switch b[i] {
		case '}':
			return i + 1, nil
		case ',':
			i++
		default:
			return i, ErrSyntax
		}
	}
}
