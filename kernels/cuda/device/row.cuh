// A row of floats as its team of threads reads and writes it: group by group of N
// elements a thread, which lie side by side (one access of 16 bytes) where rows are whole packs,
// and `size` elements apart otherwise. Computed in f32, f64 in f64.
#pragma once

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/float_types.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/team.cuh"

namespace halftone::cuda {

template <typename T>
class Row {
 public:
  static constexpr int kGroup = kPackOf<T>;
  using V = Compute<T>;

  __device__ Row(const Team& team, int64_t n, bool packed)
      : n_(n), step_(team.size), rank_(team.rank), packed_(packed) {}

  // Groups start at 0, stride(), 2 * stride(), ... up to n.
  __device__ int64_t stride() const { return int64_t{step_} * kGroup; }
  // Element i of a group.
  __device__ int64_t Index(int64_t first, int i) const {
    return packed_ ? first + int64_t{rank_} * kGroup + i : first + rank_ + int64_t{i} * step_;
  }
  // Elements from n on are `fill`.
  __device__ void Load(const T* row, int64_t first, V fill, V (&v)[kGroup]) const {
    if (packed_) {
      const int64_t at = first + int64_t{rank_} * kGroup;
      if (at < n_) {
        LoadPack<kGroup>(row + at, v);
      } else {
#pragma unroll
        for (int i = 0; i < kGroup; ++i) v[i] = fill;
      }
    } else {
      const int64_t at = first + rank_;
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const int64_t element = at + int64_t{i} * step_;
        v[i] = element < n_ ? Widen(row[element]) : fill;
      }
    }
  }
  __device__ void Store(const V (&v)[kGroup], int64_t first, T* row) const {
    if (packed_) {
      const int64_t at = first + int64_t{rank_} * kGroup;
      if (at < n_) StorePack<kGroup>(v, row + at);
    } else {
      const int64_t at = first + rank_;
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const int64_t element = at + int64_t{i} * step_;
        if (element < n_) row[element] = Narrow<T>(v[i]);
      }
    }
  }

 private:
  int64_t n_;
  int step_, rank_;
  bool packed_;
};

// How rows of n elements are cut.
struct RowCut {
  int64_t rows, n;
  int team;
  int items;  // of a thread, where a row stays in the registers of its team: 8 or 32; else 0
  bool packed;
};

inline RowCut CutRows(int64_t rows, int64_t n, DType dtype) {
  const int64_t pack = dtype == DType::kF64 ? 2 : dtype == DType::kF32 ? 4 : 8;
  RowCut cut{rows, n, kTeamBlock, 0, n % pack == 0};
  if (dtype == DType::kF64) return cut;  // for checking, not for speed
  if (n <= 8 * kWarp) {
    cut.items = 8;
    cut.team = TeamSize(n, /*few=*/8, /*most=*/8);
  } else if (n <= 32 * kWarp) {
    cut.items = 32;
    cut.team = kWarp;
  } else if (n <= 8 * kTeamBlock) {
    cut.items = 8;
  } else if (n <= 32 * kTeamBlock) {
    cut.items = 32;
  }
  return cut;
}

}  // namespace halftone::cuda
