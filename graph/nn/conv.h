// Convolution layers, described in modules.def.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/options.h"

namespace halftone::nn {
namespace internal {

// What convolution layers over any number of axes have in common.
class ConvLayer : public Module {
 public:
  std::string description() const override;

  Parameter weight;
  Parameter bias;  // undefined without bias

 protected:
  struct Extents {
    int64_t in_channels, out_channels;
    std::vector<int64_t> kernel;
    int64_t groups;
  };
  // `transposed`: weight is [in_channels,out_channels/groups,..].
  ConvLayer(const char* name, Extents extents, bool has_bias, bool transposed);
  // Has `padding` of every axis filled as `mode` says, which "zeros" leaves to the convolution: what is
  // left of the padding for it. Errors (of the layer): an unknown mode.
  std::vector<int64_t> FillPadding(const std::vector<int64_t>& padding, const std::string& mode);
  // x with that around it.
  Value Padded(const Value& x, Loc loc) const;

 private:
  const char* name_;
  Extents extents_;
  std::vector<int64_t> filled_;  // as pad() has it; empty: nothing
  std::string padding_mode_ = "zeros";
};

}  // namespace internal

class Conv1d : public internal::ConvLayer {
 public:
  using Options = Conv1dLayerOptions;
  Conv1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size,
         const Conv1dLayerOptions& options = {});
  Value forward(const Value& x) override;

 private:
  Conv1dOptions options_;
};

// Example: nn::Conv2d(1, 32, 3, {.padding = 1})
class Conv2d : public internal::ConvLayer {
 public:
  using Options = Conv2dLayerOptions;
  Conv2d(int64_t in_channels, int64_t out_channels, Size2d kernel_size,
         const Conv2dLayerOptions& options = {});
  Value forward(const Value& x) override;

 private:
  Conv2dOptions options_;
};

class Conv3d : public internal::ConvLayer {
 public:
  using Options = Conv3dLayerOptions;
  Conv3d(int64_t in_channels, int64_t out_channels, Size3d kernel_size,
         const Conv3dLayerOptions& options = {});
  Value forward(const Value& x) override;

 private:
  Conv3dOptions options_;
};

class ConvTranspose1d : public internal::ConvLayer {
 public:
  using Options = ConvTranspose1dLayerOptions;
  ConvTranspose1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size,
                  const ConvTranspose1dLayerOptions& options = {});
  Value forward(const Value& x) override;

 private:
  ConvTranspose1dOptions options_;
};

// Example: nn::ConvTranspose2d(64, 32, 4, {.stride = 2, .padding = 1}), twice the height and width
class ConvTranspose2d : public internal::ConvLayer {
 public:
  using Options = ConvTranspose2dLayerOptions;
  ConvTranspose2d(int64_t in_channels, int64_t out_channels, Size2d kernel_size,
                  const ConvTranspose2dLayerOptions& options = {});
  Value forward(const Value& x) override;

 private:
  ConvTranspose2dOptions options_;
};

class ConvTranspose3d : public internal::ConvLayer {
 public:
  using Options = ConvTranspose3dLayerOptions;
  ConvTranspose3d(int64_t in_channels, int64_t out_channels, Size3d kernel_size,
                  const ConvTranspose3dLayerOptions& options = {});
  Value forward(const Value& x) override;

 private:
  ConvTranspose3dOptions options_;
};

}  // namespace halftone::nn
