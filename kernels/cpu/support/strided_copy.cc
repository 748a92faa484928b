#include "halftone/kernels/cpu/support/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "halftone/core/check.h"
#include "halftone/core/threads.h"

namespace halftone::kernels {
namespace {

// Vectors of 16 bytes, which every x86-64 has: a transposition is bound by loads and stores.
template <typename T>
struct Vec16;
template <>
struct Vec16<uint16_t> {
  using Type = uint16_t __attribute__((vector_size(16)));
  static Type Low(Type a, Type b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  }
  static Type High(Type a, Type b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
};
template <>
struct Vec16<uint32_t> {
  using Type = uint32_t __attribute__((vector_size(16)));
  static Type Low(Type a, Type b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
  static Type High(Type a, Type b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
};
template <>
struct Vec16<uint64_t> {
  using Type = uint64_t __attribute__((vector_size(16)));
  static Type Low(Type a, Type b) { return __builtin_shufflevector(a, b, 0, 2); }
  static Type High(Type a, Type b) { return __builtin_shufflevector(a, b, 1, 3); }
};

// to[j * to_stride + i] = from[i * from_stride + j] for i, j < n = 16 / sizeof(T): log2(n) rounds,
// each interleaving row i with row i + n / 2.
template <typename T>
inline void TransposeSquare(const T* from, int64_t from_stride, T* to, int64_t to_stride) {
  using Vec = typename Vec16<T>::Type;
  const int n = 16 / sizeof(T);
  Vec rows[n], next[n];
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) std::memcpy(&rows[i], from + i * from_stride, 16);
#pragma GCC unroll 3
  for (int round = 1; round < n; round *= 2) {
#pragma GCC unroll 4
    for (int i = 0; i < n / 2; ++i) {
      next[2 * i] = Vec16<T>::Low(rows[i], rows[i + n / 2]);
      next[2 * i + 1] = Vec16<T>::High(rows[i], rows[i + n / 2]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) std::memcpy(to + i * to_stride, &rows[i], 16);
}

template <typename T>
void TransposePlainly(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                      int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns, a cache line of the
// target at a time.
template <typename T>
void TransposeMatrix(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                     int64_t columns) {
  if constexpr (sizeof(T) == 1) {
    TransposePlainly(from, from_stride, to, to_stride, rows, columns);
  } else {
    const int64_t n = 16 / sizeof(T), line = 64 / sizeof(T);
    const int64_t whole_columns = columns / n * n;
    for (int64_t begin = 0; begin < rows; begin += line) {
      const int64_t end = std::min(begin + line, rows);
      const int64_t whole = begin + (end - begin) / n * n;
      for (int64_t j = 0; j < whole_columns; j += n) {
        for (int64_t i = begin; i < whole; i += n) {
          TransposeSquare(from + i * from_stride + j, from_stride, to + j * to_stride + i,
                          to_stride);
        }
      }
      TransposePlainly(from + begin * from_stride + whole_columns, from_stride,
                       to + whole_columns * to_stride + begin, to_stride, whole - begin,
                       columns - whole_columns);
      TransposePlainly(from + whole * from_stride, from_stride, to + whole, to_stride, end - whole,
                       columns);
    }
  }
}

}  // namespace

StridedCopy::StridedCopy(size_t size, absl::Span<const int64_t> dims,
                         absl::Span<const int64_t> from_strides,
                         absl::Span<const int64_t> to_strides, int64_t from, int64_t to)
    : size_(size), from_(from), to_(to) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) empty_ = true;
    if (dims[i] != 1) axes.push_back({dims[i], from_strides[i], to_strides[i]});
  }
  if (empty_) return;
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.to > b.to; });
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    Axis* last = merged.empty() ? nullptr : &merged.back();
    if (last != nullptr && last->from == axis.from * axis.extent &&
        last->to == axis.to * axis.extent) {
      *last = {last->extent * axis.extent, axis.from, axis.to};
    } else {
      merged.push_back(axis);
    }
  }
  inner_ = {1, 1, 1};
  if (!merged.empty()) {
    inner_ = merged.back();
    merged.pop_back();
  }
  constexpr int64_t kPiece = 16384;
  block_extent_ = kPiece;
  mode_ = Mode::kStrided;
  if (inner_.to == 1 && inner_.from == 1) {
    mode_ = Mode::kContiguous;
  } else if (inner_.to == 1 && inner_.from == 0) {
    mode_ = Mode::kFill;
  } else if (inner_.to == 1) {
    const auto column =
        std::find_if(merged.begin(), merged.end(), [](const Axis& axis) { return axis.from == 1; });
    if (column != merged.end()) {
      mode_ = Mode::kTranspose;
      column_ = *column;
      merged.erase(column);
      const auto line = static_cast<int64_t>(64 / size_);
      block_extent_ = std::max<int64_t>(1, kPiece / column_.extent / line) * line;
    }
  }
  for (const Axis& axis : merged) {
    outer_[outer_rank_++] = axis;
    outer_count_ *= axis.extent;
  }
}

template <typename T>
void StridedCopy::MoveBlock(const T* from, T* to, int64_t begin, int64_t end) const {
  from += begin * inner_.from;
  to += begin * inner_.to;
  const int64_t n = end - begin;
  switch (mode_) {
    case Mode::kContiguous:
      std::memcpy(to, from, n * sizeof(T));
      return;
    case Mode::kFill:
      std::fill_n(to, n, *from);
      return;
    case Mode::kTranspose:
      TransposeMatrix(from, inner_.from, to, column_.to, n, column_.extent);
      return;
    case Mode::kStrided:
      for (int64_t i = 0; i < n; ++i) to[i * inner_.to] = from[i * inner_.from];
      return;
  }
}

template <typename T>
void StridedCopy::RunAs(const T* from, T* to) const {
  const int64_t blocks = (inner_.extent + block_extent_ - 1) / block_extent_;
  const int64_t block_size = std::min(inner_.extent, block_extent_) * column_.extent;
  constexpr int64_t kGrain = 32768;
  ParallelFor(0, outer_count_ * blocks, std::max<int64_t>(1, kGrain / block_size),
              [&](int64_t first, int64_t last) {
                std::array<int64_t, kMaxRank> index{};
                int64_t rest = first / blocks, from_at = from_, to_at = to_;
                for (int k = outer_rank_ - 1; k >= 0; --k) {
                  index[k] = rest % outer_[k].extent;
                  rest /= outer_[k].extent;
                  from_at += index[k] * outer_[k].from;
                  to_at += index[k] * outer_[k].to;
                }
                int64_t block = first % blocks;
                for (int64_t unit = first; unit < last; ++unit) {
                  const int64_t begin = block * block_extent_;
                  MoveBlock(from + from_at, to + to_at, begin,
                            std::min(begin + block_extent_, inner_.extent));
                  if (++block < blocks) continue;
                  block = 0;
                  for (int k = outer_rank_ - 1; k >= 0; --k) {
                    from_at += outer_[k].from;
                    to_at += outer_[k].to;
                    if (++index[k] < outer_[k].extent) break;
                    from_at -= outer_[k].from * outer_[k].extent;
                    to_at -= outer_[k].to * outer_[k].extent;
                    index[k] = 0;
                  }
                }
              });
}

void StridedCopy::Run(const void* from, void* to) const {
  if (empty_) return;
  switch (size_) {
    case 1:
      return RunAs(static_cast<const uint8_t*>(from), static_cast<uint8_t*>(to));
    case 2:
      return RunAs(static_cast<const uint16_t*>(from), static_cast<uint16_t*>(to));
    case 4:
      return RunAs(static_cast<const uint32_t*>(from), static_cast<uint32_t*>(to));
    case 8:
      return RunAs(static_cast<const uint64_t*>(from), static_cast<uint64_t*>(to));
    default:
      HT_CHECK(false, "element size");
  }
}

}  // namespace halftone::kernels
