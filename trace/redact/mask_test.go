package redact

import (
	"testing"
)

func TestMask(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Bearer abc12345", "Bearer [secret]"},
		{"Authorization: Bearer abc12345", "Authorization: [secret]"},
		{`curl -H "x-api-key: abc" http://x`, `curl -H "x-api-key: [secret]" http://x`},
		{"python3 serve.py --api-key abc --tp 2", "python3 serve.py --api-key [secret] --tp 2"},
		{"--api-key=abc --hf-token 'x y'", "--api-key=[secret] --hf-token '[secret] y'"},
		{"ServerArgs(api_key='abc', tp=2)", "ServerArgs(api_key='[secret]', tp=2)"},
		{`{"password": "abc", "n": 1}`, `{"password": "[secret]", "n": 1}`},
		{"GET /users/7?key=abc&n=1", "GET /users/7?key=[secret]&n=1"},
		{"GET /users?n=1&access_token=abc#top", "GET /users?n=1&access_token=[secret]"},
		{"postgres://jane:abc@db/x", "postgres://jane:[secret]@db/x"},
		{"key sk-proj-abcdefgh12345678 was refused", "key [secret] was refused"},
		{"hf_AbCdEfGhIjKlMnOpQrStUvWxYz", "[secret]"},
		{"ghp_AbCdEfGhIjKlMnOpQrStUvWxYz", "[secret]"},
		{"xoxb-123456789-abc", "[secret]"},
		{"AKIA1234567890ABCDEF", "[secret]"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "[secret]"},
		{"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----[secret]"},
	} {
		if got := Mask(c.text); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.text, got, c.want)
		}
		if !hasCredential(c.text) || hasCredential(c.want) {
			t.Errorf("%q: a credential: %v; masked: %v", c.text, hasCredential(c.text), hasCredential(c.want))
		}
	}
}

// Names that engineers look for in a timeline are not masked as credentials.
func TestMaskLeavesNamesOfThings(t *testing.T) {
	for _, text := range []string{
		"", "decode_loop", "prefill_transfer_kv_cache", "tokenize", "first token: 12", "max_new_token=None", "api_key=None", "cache key mismatch", "smg:http_request",
		"void at::native::vectorized_elementwise_kernel<4, at::native::Token::copy>(int, std::array<char*, 2ul>)", "moe::token::permute", "GET /v1/models?limit=5",
		"nvjet_sk_64x128_64x8_1x2_h_bz_splitK_TNT", "task-sk-learn", "hf_transformers_forward", "basic block", "the bearer of this", "--tokenizer-path /x", "--max-token 12",
		"kernel_key: 7", "http://10.0.0.12:30000", "jane@acme.example", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
	} {
		if got := Mask(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// Masking is idempotent, and the quick search for candidates misses no credential.
func FuzzMask(f *testing.F) {
	for _, s := range []string{"Bearer abc12345", "--api-key x", "a://b:c@d", "?key=1a", "token='a'", "pass: [secret", "sk-1234567890abcdefgh"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := Mask(text)
		if twice := Mask(once); twice != once {
			t.Errorf("%q becomes %q and then %q", text, once, twice)
		}
		for i := range credentialShapes {
			if got := credentialShapes[i].mask(text); got != text && candidates(text)&(1<<i) == 0 {
				t.Errorf("%q has a credential by %s, and is not looked at", text, credentialShapes[i].pattern)
			}
		}
	})
}
