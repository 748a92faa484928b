// Target: what a device can do, as far as graph passes may know. Implemented by kernels for real
// devices and as fixed descriptions for golden tests.
#pragma once

#include <cstdint>
#include <string>

#include "halftone/core/dtype.h"

namespace halftone::ir {

class Node;

// What the memory plan asks of the kernel that runs a node.
struct KernelTraits {
  int64_t workspace_bytes = 0;
  // Whether it leaves state as it was once the step has a fault.
  bool keeps_state_on_fault = false;
};

class Target {
 public:
  virtual ~Target() = default;
  // "cpu-avx512bf16", "cpu-avx512-nhwc", "cpu-avx2", "cuda-sm90".
  virtual const std::string& name() const = 0;
  // Whether a non-reference kernel runs op `op` with its main operands in `dtype`.
  virtual bool HasKernel(const std::string& op, DType dtype) const = 0;
  // Whether any kernel, reference included, exists for the op (false: passes decompose it).
  virtual bool CanRun(const std::string& op) const = 0;
  // The low type that `amp auto` chooses here; kF32 where 16 bit does not pay, with the reason.
  virtual DType PreferredLowType(std::string* reason) const = 0;
  // Why products of 8-bit operands do not run here; empty: they do.
  virtual std::string WhyNoF8() const = 0;
  // Whether activations are best kept channels-last.
  virtual bool PrefersChannelsLast() const = 0;
  // Whether they are better still in blocks of channels around convolutions (Layout::kChannelBlocks).
  virtual bool PrefersChannelBlocks() const { return false; }
  // Whether the products of its libraries take a bias in the operands' dtype alone, so that an f32
  // bias beside 16-bit operands is rounded before it is added.
  virtual bool RoundsBiases() const = 0;
  // Whether 16-bit casts of variables are kept from step to step, and updates write them.
  virtual bool KeepsLowWeights() const = 0;
  // Whether kernels hold weights that stay the same from step to step in an order of their own.
  virtual bool PacksWeights() const = 0;
  // Whether a step runs on to its end after a fault, instead of ending there.
  virtual bool RunsOnAfterFault() const = 0;
  // Whether neighbouring elementwise ops are better one node `fused`.
  virtual bool FusesElementwise() const = 0;
  // Whether `op`, which is elementwise and has a kernel, may be part of one: an op of the program may not on
  // a device whose fused kernel knows its ops.
  virtual bool FusesOp(const std::string& /*op*/) const { return FusesElementwise(); }
  // Why `node` is computed in f32, on copies of its 16-bit operands and results; empty: it is not.
  virtual std::string WhyWidened(const Node& node) const = 0;
  // Whether one kernel does several nodes of the update op `op`.
  virtual bool JoinsUpdates(const std::string& op) const = 0;
  // Of the kernel that `node` gets, which may be created for it; the default where none can be.
  virtual KernelTraits TraitsOf(const Node& node) const = 0;
};

}  // namespace halftone::ir
