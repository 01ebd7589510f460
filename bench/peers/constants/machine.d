immutable int[15] code = [0, 0, SIZE, 0, 1, 3, 1, 2, 1, 2, 0, 6, 3, 0, 0];
int run() {
    int pc = 0, a = 0, b = 0, c = 0;
    while (true) {
        int op = code[pc], r = code[pc + 1], k = code[pc + 2];
        if (op == 3) return c;
        if (op == 2) {
            a--;
            pc = a == 0 ? pc + 3 : k;
            continue;
        }
        int n = op == 0 ? k : k == 0 ? a : k == 1 ? b : c;
        if (r == 0) a += n;
        else if (r == 1) b += n;
        else c = (c + n) & 0xffff;
        pc += 3;
    }
}
enum int result = run();
int main() { return result & 127; }
