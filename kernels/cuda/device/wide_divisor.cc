#include "halftone/kernels/cuda/device/wide_divisor.h"

#include "halftone/core/check.h"

namespace halftone::cuda {

__extension__ using Uint128 = unsigned __int128;

WideDivisor WideDivisorOf(int64_t divisor) {
  HT_CHECK(divisor >= 1, "a divisor below 1");
  WideDivisor d;
  d.divisor = divisor;
  while (d.shift < 63 && (int64_t{1} << d.shift) < divisor) ++d.shift;
  const Uint128 excess = (uint64_t{1} << d.shift) - static_cast<uint64_t>(divisor);
  d.factor = static_cast<uint64_t>((excess << 64) / static_cast<uint64_t>(divisor)) + 1;
  return d;
}

}  // namespace halftone::cuda
