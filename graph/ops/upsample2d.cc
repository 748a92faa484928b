// upsample2d: images in another resolution, and its adjoint.

#include <cmath>

#include "halftone/graph/ops/support/nn.h"
#include "halftone/graph/ops/support/resampling.h"

namespace halftone::ops {
namespace {

// Attributes of both ops, and that images [N,C,H,W] have pixels where the results do.
absl::Status CheckResampling(const ir::InferContext& ctx, const Shape& image) {
  HT_RETURN_IF_ERROR(CheckChoice(ctx, "mode", {"nearest", "bilinear"}));
  HT_RETURN_IF_ERROR(CheckInts(ctx, "size", 2, 1));
  const std::vector<double>& scales = ctx.attrs.Get<std::vector<double>>("scales");
  bool good = scales.empty() || scales.size() == 2;
  for (double scale : scales) good = good && scale > 0 && std::isfinite(scale);
  if (!good) return OpError(ctx, "scales; expected none, or two finite numbers above 0");
  if (image[2] < 1 || image[3] < 1) {
    return OpError(ctx, "images are ", image, "; expected height and width above 0");
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> Resized(const ir::InferContext& ctx, const Shape& image) {
  const Ints& size = ctx.attrs.GetInts("size");
  return MakeShape(ctx, {image[0], image[1], size[0], size[1]});
}

Types InferUpsample(const ir::InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "x", 4, 4));
  const ir::ValueType& x = ctx.inputs[0];
  HT_RETURN_IF_ERROR(CheckResampling(ctx, x.shape));
  HT_ASSIGN_OR_RETURN(Shape shape, Resized(ctx, x.shape));
  return OneType(x.dtype, std::move(shape));
}

Types InferUpsampleGrad(const ir::InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "dy", 4, 4));
  HT_ASSIGN_OR_RETURN(Shape shape, ShapeAttr(ctx, "shape", 4));
  HT_RETURN_IF_ERROR(CheckResampling(ctx, shape));
  HT_ASSIGN_OR_RETURN(const Shape resized, Resized(ctx, shape));
  const ir::ValueType& dy = ctx.inputs[0];
  if (dy.shape != resized) {
    return OpError(ctx, "dy is ", dy, "; expected the shape of y, ", resized);
  }
  return OneType(dy.dtype, std::move(shape));
}

std::vector<ir::AttrSpec> ResamplingAttrs() {
  return {
      Required("size", ir::AttrType::kInts, "height and width of y"),
      Optional("mode", std::string("nearest"), "nearest or bilinear"),
      Optional("align_corners", false, "bilinear: the corner pixels' centres stay in place"),
      Optional("scales", std::vector<double>(),
               "of height and width, where they decide what is read; none: y's extent over x's")};
}

}  // namespace

void Register_upsample2d(ir::OpRegistry& r) {
  ir::OpRecord up;
  up.name = "upsample2d";
  up.doc =
      "y[n,c,i,j] = x at (p(i), p(j)). nearest: p(i) = floor(i / scale). bilinear: between the two "
      "nearest rows and columns, p(i) = (i + 0.5) / scale - 0.5 within 0..H-1, or i (H - 1) / (OH - "
      "1) if align_corners. Gradient: upsample2d_grad";
  up.source = "https://pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html";
  up.inputs = {{"x", ir::kFloats, "[N,C,H,W]"}};
  up.outputs = {{"y", "[N,C,OH,OW], dtype of x"}};
  up.attrs = ResamplingAttrs();
  up.amp = InferAcc("a mean of neighbours fits where they do; weights are f32 inside");
  up.cost = FlopsPerOutput(8);
  up.infer = InferUpsample;
  up.gradient = [](ir::GradContext& c) {
    ir::Attributes attrs = c.attrs();
    attrs.Set("shape", ToInts(c.in(0).shape()));
    c.set_dx(0, c.b.Op("upsample2d_grad", {c.dy(0)}, std::move(attrs)));
  };
  up.gradient_ops = {"upsample2d_grad"};
  AddOp(r, std::move(up));

  ir::OpRecord grad;
  grad.name = "upsample2d_grad";
  grad.doc =
      "dx of upsample2d: each dy is added, by its weights, to the pixels it was read from; summed in "
      "f64. Gradient: upsample2d";
  grad.source = "adjoint of upsample2d";
  grad.inputs = {{"dy", ir::kFloats, "[N,C,OH,OW]"}};
  grad.outputs = {{"dx", "[N,C,H,W], dtype of dy"}};
  grad.attrs = ResamplingAttrs();
  grad.attrs.push_back(Required("shape", ir::AttrType::kInts, "shape of dx"));
  grad.amp = InferAcc("follows upsample2d; adds in f64");
  grad.cost = FlopsPerInput(8);
  grad.infer = InferUpsampleGrad;
  grad.gradient = [](ir::GradContext& c) {
    const ir::Attributes& own = c.attrs();
    c.set_dx(0, c.b.Op("upsample2d", {c.dy(0)},
                       {{"size", own.GetInts("size")},
                        {"mode", own.GetString("mode")},
                        {"align_corners", own.GetBool("align_corners")},
                        {"scales", own.Get<std::vector<double>>("scales")}}));
  };
  grad.gradient_ops = {"upsample2d"};
  AddOp(r, std::move(grad));
}

}  // namespace halftone::ops
