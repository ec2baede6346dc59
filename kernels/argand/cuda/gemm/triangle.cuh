// The order of the square tiles that cover the lower triangle of a square result. Both kernel
// families compute them alone where a plan says `triangle`: for a Hermitian result, whose upper
// triangle is the conjugate of the lower one (argand/herk).
#pragma once
#include "device/triangle.cuh"

struct TriangleTile {
    uint32 row, column;
};

// Tile number `index` of a triangle of `rows` tile rows. As in a rectangle, tiles run column by
// column in groups of `group_rows` tile rows, because the tiles of a wave then share operands in
// L2; the triangle at the end of a group runs row by row.
__device__ __forceinline__ TriangleTile triangle_tile_at(uint32 index, uint32 rows,
                                                         uint32 group_rows) {
    const uint32 first = triangle_row(index) / group_rows * group_rows;
    const uint32 in_group = index - first * (first + 1) / 2;
    const uint32 height = min(rows - first, group_rows);
    if (in_group < first * height) return {first + in_group % height, in_group / height};
    const uint32 in_triangle = in_group - first * height, row = triangle_row(in_triangle);
    return {first + row, first + in_triangle - row * (row + 1) / 2};
}
