// What a machine does at best, to which a profile relates its kernels.
#pragma once

#include <map>

#include "halftone/core/device.h"
#include "halftone/core/dtype.h"
#include "halftone/core/status.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::tools {

struct Peak {
  // A second, of a large matrix product or a large convolution, whichever is faster, in f32, bf16 and f16.
  std::map<DType, double> flops;
  double bytes = 0;  // a second, read and written by a pass over more than the caches

  // The share of the peak at which `node` ran in `seconds`: of the arithmetic or of the memory,
  // whichever is larger, by the cost that its record states. More than 1 where the operands lay in
  // the cache. 0 where nothing is known.
  double Share(const ir::Node& node, double seconds) const;

  // The seconds that the arithmetic of `node`, elementwise work included, takes at the peak of the
  // dtype in which it multiplies. 0 where nothing is known.
  double ArithmeticSeconds(const ir::Node& node) const;
};

// Runs products of 1,024 by 1,024, convolutions of 3 by 3 over 256 channels and a pass over 64 MiB, each
// several times, on `device` with the threads that a step has: the best of each. Takes about a second.
// Of the reference device nothing is known. Errors: those of compiling, and of the device.
absl::StatusOr<Peak> MeasurePeak(const Device& device);

}  // namespace halftone::tools
