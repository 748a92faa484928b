// Inner loops of reductions over f32 lanes. An Op has: Acc, kInitial; Start, Step on vectors; Flush
// adds each lane to its own accumulator, FlushLanes all lanes to one, Scalar a value to one.
//
// Lanes take short blocks only (up to 1,024 elements of a run, kLaneTerms rows of a column) before
// they are flushed, so that where Acc is double the error does not grow with the length.
#if defined(HALFTONE_SIMD_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_SIMD_REDUCE_INL_H_
#undef HALFTONE_SIMD_REDUCE_INL_H_
#else
#define HALFTONE_SIMD_REDUCE_INL_H_
#endif

#include <algorithm>

#include "halftone/kernels/cpu/simd/reduce_fns.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

template <typename Op, typename T>
void ReduceRun(const void* data, int64_t n, void* result) {
  const T* x = static_cast<const T*>(data);
  auto* acc = static_cast<typename Op::Acc*>(result);
  constexpr int64_t kStep = kLanes, kBlock = std::min<int64_t>(1024, 4 * kLaneTerms * kStep);
  const int64_t whole = n / kStep * kStep;
  for (int64_t begin = 0; begin < whole; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, whole);
    F32Vec a0 = Op::Start(), a1 = a0, a2 = a0, a3 = a0;
    int64_t i = begin;
    for (; i + 4 * kStep <= end; i += 4 * kStep) {
      a0 = Op::Step(a0, LoadVec(x + i));
      a1 = Op::Step(a1, LoadVec(x + i + kStep));
      a2 = Op::Step(a2, LoadVec(x + i + 2 * kStep));
      a3 = Op::Step(a3, LoadVec(x + i + 3 * kStep));
    }
    for (; i < end; i += kStep) a0 = Op::Step(a0, LoadVec(x + i));
    Op::FlushLanes(Op::Step(Op::Step(a0, a1), Op::Step(a2, a3)), acc);
  }
  for (int64_t i = whole; i < n; ++i) Op::Scalar(static_cast<float>(x[i]), acc);
}

// kVecs vectors side by side.
template <typename Op, int kVecs, typename T>
HWY_INLINE void ReduceStrip(const T* x, int64_t stride, int64_t rows, typename Op::Acc* acc) {
  static_assert(kVecs == 1 || kVecs == 4);
  for (int64_t begin = 0; begin < rows; begin += kLaneTerms) {
    const int64_t end = std::min(begin + kLaneTerms, rows);
    F32Vec a0 = Op::Start(), a1 = a0, a2 = a0, a3 = a0;
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * stride;
      a0 = Op::Step(a0, LoadVec(row));
      if constexpr (kVecs == 4) {
        a1 = Op::Step(a1, LoadVec(row + kLanes));
        a2 = Op::Step(a2, LoadVec(row + 2 * kLanes));
        a3 = Op::Step(a3, LoadVec(row + 3 * kLanes));
      }
    }
    Op::Flush(a0, acc);
    if constexpr (kVecs == 4) {
      Op::Flush(a1, acc + kLanes);
      Op::Flush(a2, acc + 2 * kLanes);
      Op::Flush(a3, acc + 3 * kLanes);
    }
  }
}

template <typename Op, typename T>
void ReduceTile(const T* x, int64_t stride, int64_t rows, int64_t width, typename Op::Acc* acc) {
  constexpr int64_t kStep = kLanes;
  int64_t j = 0;
  for (; j + 4 * kStep <= width; j += 4 * kStep) {
    ReduceStrip<Op, 4>(x + j, stride, rows, acc + j);
  }
  for (; j + kStep <= width; j += kStep) ReduceStrip<Op, 1>(x + j, stride, rows, acc + j);
  if (j >= width) return;
  typename Op::Acc part[kLanes];
  std::fill_n(part, kLanes, Op::kInitial);
  for (int64_t begin = 0; begin < rows; begin += kLaneTerms) {
    F32Vec a = Op::Start();
    for (int64_t r = begin; r < std::min(begin + kLaneTerms, rows); ++r) {
      a = Op::Step(a, LoadPart(x + r * stride + j, width - j));
    }
    Op::Flush(a, part);
  }
  for (int64_t i = j; i < width; ++i) Op::Scalar(part[i - j], acc + i);
}

// Few columns: kLanes rows are one row of kLanes times the width, a whole number of vectors, folded
// at the end.
template <typename Op, typename T>
void ReduceColumns(const void* data, int64_t stride, int64_t rows, int64_t width, void* result) {
  const T* x = static_cast<const T*>(data);
  auto* acc = static_cast<typename Op::Acc*>(result);
  constexpr int64_t kStep = kLanes;
  if (kStep > 1 && width < 4 * kStep && width == stride && rows >= 2 * kStep) {
    typename Op::Acc wide[4 * kLanes * kLanes];
    std::fill_n(wide, width * kStep, Op::kInitial);
    const int64_t folded = rows / kStep;
    ReduceTile<Op>(x, stride * kStep, folded, width * kStep, wide);
    for (int64_t i = 0; i < kStep; ++i) {
      for (int64_t j = 0; j < width; ++j) Op::Scalar(wide[i * width + j], acc + j);
    }
    x += folded * kStep * stride;
    rows -= folded * kStep;
  }
  ReduceTile<Op>(x, stride, rows, width, acc);
}

template <typename Op>
ReduceFns FnsOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {ReduceRun<Op, F16>, ReduceColumns<Op, F16>};
    case DType::kBF16:
      return {ReduceRun<Op, BF16>, ReduceColumns<Op, BF16>};
    default:
      return {ReduceRun<Op, float>, ReduceColumns<Op, float>};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#endif  // HALFTONE_SIMD_REDUCE_INL_H_
