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

// Whether each wave of `blocks` takes tiles of one triangle alone, of the `tiles` that it has, and
// the few that are left of all triangles follow together. Else a wave would read the operands of
// two triangles, and more than L2 holds.
__device__ __forceinline__ constexpr bool has_own_wave(uint32 tiles, uint32 blocks) {
    return blocks < tiles && 16 * (tiles - blocks) <= blocks;
}

// The triangle of a tile, and the tile's number in it.
struct TriangleIndex {
    uint32 triangle, tile;
};

// Tile number `index` of `triangles` of `tiles` each.
__device__ __forceinline__ constexpr TriangleIndex triangle_index(uint32 index, uint32 triangles,
                                                                  uint32 tiles, uint32 blocks) {
    if (!has_own_wave(tiles, blocks)) return {index / tiles, index % tiles};
    if (index < triangles * blocks) return {index / blocks, index % blocks};
    const uint32 left = tiles - blocks, after = index - triangles * blocks;
    return {after / left, blocks + after % left};
}

// The number of the first tile of tile row `row`. None before reads the operand of these rows,
// which is that of the tile column of the same number.
__device__ __forceinline__ constexpr uint32 first_tile_of_row(uint32 row, uint32 group_rows) {
    const uint32 first = row / group_rows * group_rows, in_group = row - first;
    // All but the first group begin with a column of a rectangle.
    return first * (first + 1) / 2 + (first > 0 ? in_group : in_group * (in_group + 1) / 2);
}
