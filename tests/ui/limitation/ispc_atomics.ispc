void own(uniform int * uniform * uniform p, uniform int * q) {
    atomic_swap_global(p, q); //~ error[limitation]: atomic operations with a pointer in each lane are not supported yet
}
