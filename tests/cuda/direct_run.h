// One native CUDA kernel with its arrays placed as a test wants them, beside the CPU's kernel.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/kernels/kernel.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"

namespace halftone::testing {

struct Placement {
  uint64_t run_count = kTestRunCount;
  size_t offset = 0;  // bytes that each array begins past an address of cudaMalloc
  int in_place = -1;  // the input that output 0 lies over
};

// Output 0 of "cuda:native:<op>", plain. Ends the test program if there is no such kernel.
Tensor RunNative(const ir::Node& node, const std::vector<Tensor>& inputs, Placement placement = {});
// Output 0 of the first CPU kernel.
Tensor RunCpu(const ir::Node& node, const std::vector<Tensor>& inputs,
              uint64_t run_count = kTestRunCount);

// The same bits, or NaN in both.
::testing::AssertionResult SameBits(const Tensor& got, const Tensor& want);

// The native kernel of the case against the CPU's, bit for bit.
void ExpectCpuBits(const OpCase& c, DType dtype, Placement placement = {},
                   ir::Layout layout = ir::Layout::kPlain);
// Against the reference, within the tolerance of the op.
void ExpectReference(const OpCase& c, DType dtype, ir::Layout layout = ir::Layout::kPlain);

}  // namespace halftone::testing
