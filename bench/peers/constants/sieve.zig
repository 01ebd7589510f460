fn sieve() i32 {
    var composite: [SIZE]bool = @splat(false);
    var count: i32 = 0;
    var i: usize = 2;
    while (i < SIZE) : (i += 1) {
        if (!composite[i]) {
            count += 1;
            var j = i + i;
            while (j < SIZE) : (j += i) composite[j] = true;
        }
    }
    return count;
}
const result = blk: {
    @setEvalBranchQuota(4_000_000_000);
    break :blk sieve();
};
export fn answer() i32 {
    return result & 127;
}
