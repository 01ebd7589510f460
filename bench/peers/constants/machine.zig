const code = [_]i32{ 0, 0, SIZE, 0, 1, 3, 1, 2, 1, 2, 0, 6, 3, 0, 0 };
fn run() i32 {
    var pc: usize = 0;
    var a: i32 = 0;
    var b: i32 = 0;
    var c: i32 = 0;
    while (true) {
        const op = code[pc];
        const r = code[pc + 1];
        const k = code[pc + 2];
        if (op == 3) return c;
        if (op == 2) {
            a -= 1;
            pc = if (a == 0) pc + 3 else k;
            continue;
        }
        const n = if (op == 0) k else if (k == 0) a else if (k == 1) b else c;
        if (r == 0) {
            a += n;
        } else if (r == 1) {
            b += n;
        } else {
            c = (c + n) & 0xffff;
        }
        pc += 3;
    }
}
const result = blk: {
    @setEvalBranchQuota(4_000_000_000);
    break :blk run();
};
export fn answer() i32 {
    return result & 127;
}
