#include "halftone/distributed/add_shares.h"

#include <algorithm>

#include "halftone/core/convert.h"
#include "halftone/core/threads.h"

namespace halftone::distributed {
namespace {

// Elements that are added at a time: their sums stay in the first cache.
constexpr int64_t kBlock = 1024;

// Adds `count` elements of each share, in order; the sums, in T, lie in `sums`.
template <typename T>
void AddBlock(const char* const* shares, int ranks, DType dtype, int64_t first, int64_t count,
              T* sums) {
  const DType wide = sizeof(T) == 8 ? DType::kF64 : DType::kF32;
  const auto bytes = static_cast<int64_t>(SizeOf(dtype));
  T term[kBlock];
  ConvertElements(shares[0] + first * bytes, dtype, sums, wide, count);
  for (int r = 1; r < ranks; ++r) {
    const T* from = term;
    if (dtype == wide) {
      from = reinterpret_cast<const T*>(shares[r]) + first;
    } else {
      ConvertElements(shares[r] + first * bytes, dtype, term, wide, count);
    }
    for (int64_t i = 0; i < count; ++i) sums[i] += from[i];
  }
}

template <typename T>
void AddAll(const char* const* shares, int ranks, DType dtype, int64_t count, bool mean, char* to) {
  const auto bytes = static_cast<int64_t>(SizeOf(dtype));
  ParallelFor(0, count, 16 * kBlock, [&](int64_t begin, int64_t end) {
    T sums[kBlock];
    for (int64_t first = begin; first < end; first += kBlock) {
      const int64_t n = std::min(kBlock, end - first);
      AddBlock<T>(shares, ranks, dtype, first, n, sums);
      if (mean) {
        for (int64_t i = 0; i < n; ++i) sums[i] /= static_cast<T>(ranks);
      }
      ConvertElements(sums, sizeof(T) == 8 ? DType::kF64 : DType::kF32, to + first * bytes, dtype,
                      n);
    }
  });
}

}  // namespace

void AddShares(const char* const* shares, int ranks, DType dtype, int64_t count, bool mean,
               char* to) {
  if (dtype == DType::kF64) {
    AddAll<double>(shares, ranks, dtype, count, mean, to);
  } else {
    AddAll<float>(shares, ranks, dtype, count, mean, to);
  }
}

void PutWord(bool failed, char* element, DType dtype) {
  FillElements(failed ? 1 : 0, element, dtype, 1);
}

bool HasWord(const char* element, DType dtype) {
  double word = 0;
  ConvertElements(element, dtype, &word, DType::kF64, 1);
  return word != 0;
}

}  // namespace halftone::distributed
