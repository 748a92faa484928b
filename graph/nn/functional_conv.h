// Convolution and pooling over [N,C,H,W].
#pragma once

#include <vector>

#include "halftone/graph/nn/op.h"

namespace halftone::nn {

// Height and width; one number stands for both.
struct Size2d {
  Size2d(int64_t both) : h(both), w(both) {}  // NOLINT: converts by design
  Size2d(int64_t height, int64_t width) : h(height), w(width) {}
  std::vector<int64_t> ints() const { return {h, w}; }
  int64_t h;
  int64_t w;
};

struct Conv2dOptions {
  Size2d stride = 1;
  Size2d padding = 0;  // on both sides, zeros
  Size2d dilation = 1;
  int64_t groups = 1;
};

struct MaxPool2dOptions {
  Size2d stride = 0;  // 0: the kernel size
  Size2d padding = 0;
  Size2d dilation = 1;
  bool ceil_mode = false;  // whether a last window may reach over the border
};

struct AvgPool2dOptions {
  Size2d stride = 0;  // 0: the kernel size
  Size2d padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  // whether padding counts in the divisor
};

// Cross-correlation. Shapes: x [N,C,H,W], weight [O,C/groups,kh,kw], bias [O] ->
// [N,O,(H+2*padding-dilation*(kh-1)-1)/stride+1,..]. Errors: channels or groups that do not fit, a
// window larger than the padded input.
Value conv2d(const Value& x, const Value& weight, const Conv2dOptions& options = {},
             Loc loc = Loc::current());
Value conv2d(const Value& x, const Value& weight, const Value& bias,
             const Conv2dOptions& options = {}, Loc loc = Loc::current());
// The largest value of each window; a NaN in a window wins.
Value max_pool2d(const Value& x, Size2d kernel, const MaxPool2dOptions& options = {},
                 Loc loc = Loc::current());
// The mean of each window.
Value avg_pool2d(const Value& x, Size2d kernel, const AvgPool2dOptions& options = {},
                 Loc loc = Loc::current());

}  // namespace halftone::nn
