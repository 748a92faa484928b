// Layers that change the resolution of images, described in modules.def.
#pragma once

#include <string>

#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/module.h"

namespace halftone::nn {

class Upsample : public Module {
 public:
  using Options = InterpolateOptions;
  explicit Upsample(const InterpolateOptions& options = {}) : options_(options) {}
  Value forward(const Value& x) override { return interpolate(x, options_, internal::CallSite()); }
  std::string description() const override;

 private:
  InterpolateOptions options_;
};

class PixelShuffle : public Module {
 public:
  explicit PixelShuffle(int64_t upscale_factor) : factor_(upscale_factor) {}
  Value forward(const Value& x) override { return pixel_shuffle(x, factor_, internal::CallSite()); }
  std::string description() const override;

 private:
  int64_t factor_;
};

class PixelUnshuffle : public Module {
 public:
  explicit PixelUnshuffle(int64_t downscale_factor) : factor_(downscale_factor) {}
  Value forward(const Value& x) override {
    return pixel_unshuffle(x, factor_, internal::CallSite());
  }
  std::string description() const override;

 private:
  int64_t factor_;
};

}  // namespace halftone::nn
