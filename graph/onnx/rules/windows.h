// Kernel, stride, padding and dilation of ONNX's convolutions and poolings.
#pragma once

#include <algorithm>

#include "halftone/graph/onnx/rules/formulas.h"

namespace halftone::onnx {

// A list for each spatial axis.
struct Windows {
  Ints kernel, strides, dilations, begin, end;  // begin and end: what is added around x

  size_t dims() const { return kernel.size(); }
  bool symmetric() const { return begin == end; }
  bool dilated() const {
    return std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; });
  }
  // Extent of the dilated kernel.
  int64_t Span(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  // Another axis in front, of extent 1.
  void AddHeight();
};

// From the attributes; `kernel` where the node gives none. auto_pad counts on the extents of operand
// 0. Fails where numbers are out of range or not one for each spatial axis; sizes are then 1.
Windows WindowsOf(NodeImport& n, const Ints& kernel);

// Pads for every axis of x, of which the first two are not spatial.
Expr PadWindows(Expr x, const Windows& windows, double value);

}  // namespace halftone::onnx
