struct Count { int v, c; };
constexpr Count fib(int n, int c) {
  if (n < 2) return {n, c + 1};
  Count a = fib(n - 1, c + 1), b = fib(n - 2, a.c);
  return {a.v + b.v, b.c};
}
constexpr Count result = fib(SIZE, 0);
int main() { return (result.v + result.c) & 127; }
