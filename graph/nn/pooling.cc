#include "halftone/graph/nn/pooling.h"

#include "halftone/core/status.h"

namespace halftone::nn {
namespace {

std::string Text(const char* layer, int64_t size) { return Concat(layer, "(", size, ")"); }
std::string Text(const char* layer, Size2d size) {
  return Concat(layer, "(", size.h, ", ", size.w, ")");
}

}  // namespace

std::string MaxPool1d::description() const { return Text("MaxPool1d", kernel_); }

std::string MaxPool2d::description() const { return Text("MaxPool2d", kernel_); }

std::string AvgPool1d::description() const { return Text("AvgPool1d", kernel_); }

std::string AvgPool2d::description() const { return Text("AvgPool2d", kernel_); }

std::string AdaptiveAvgPool1d::description() const { return Text("AdaptiveAvgPool1d", size_); }

std::string AdaptiveAvgPool2d::description() const { return Text("AdaptiveAvgPool2d", size_); }

std::string AdaptiveMaxPool1d::description() const { return Text("AdaptiveMaxPool1d", size_); }

std::string AdaptiveMaxPool2d::description() const { return Text("AdaptiveMaxPool2d", size_); }

}  // namespace halftone::nn
