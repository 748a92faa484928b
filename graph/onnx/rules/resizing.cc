// Images and other grids in another resolution.
#include <algorithm>
#include <cmath>

#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/formulas.h"

namespace halftone::onnx {
namespace {

// What Resize says of all axes.
struct Resampling {
  std::string mode, coordinates, rounding;  // rounding: of nearest
  double cubic = -0.75;
  bool exclude_outside = false;
};

// One axis of extent `input` resized to `output`; `scale` is what coordinates are computed with.
struct Axis {
  int64_t index, input, output;
  double scale;
};

// The place in the input that an output position stands for.
double PlaceOf(const Resampling& r, const Axis& axis, int64_t position) {
  const auto x = static_cast<double>(position);
  const auto in = static_cast<double>(axis.input), out = static_cast<double>(axis.output);
  const double exact =
      in * axis.scale;  // the extent that the output would have, were it no integer
  if (r.coordinates == "asymmetric") return x / axis.scale;
  if (r.coordinates == "align_corners") return out > 1 ? x * (in - 1) / (exact - 1) : 0;
  if (r.coordinates == "pytorch_half_pixel" && out <= 1) return 0;
  const double place = (x + 0.5) / axis.scale - 0.5;
  if (r.coordinates != "half_pixel_symmetric") return place;
  // Centred where the output has fewer positions than the scale gives.
  return in / 2 * (1 - out / exact) + place;
}

int64_t NearestOf(const std::string& rounding, double place) {
  const double low = std::floor(place);
  if (rounding == "floor") return static_cast<int64_t>(low);
  if (rounding == "ceil") return static_cast<int64_t>(std::ceil(place));
  const bool tie = place - low == 0.5;
  if (tie) return static_cast<int64_t>(low) + (rounding == "round_prefer_ceil" ? 1 : 0);
  return static_cast<int64_t>(std::floor(place + 0.5));
}

// The weights of the two or four neighbours, the first of which is `first`.
std::vector<double> WeightsOf(const Resampling& r, double place, int64_t* first) {
  const double low = std::floor(place), t = place - low;
  if (r.mode == "linear") {
    *first = static_cast<int64_t>(low);
    return {1 - t, t};
  }
  *first = static_cast<int64_t>(low) - 1;
  // Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = cubic.
  const double a = r.cubic;
  const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(1 + t), near(t), near(1 - t), far(2 - t)};
}

Expr Picked(NodeImport& n, Expr x, const Axis& axis, const Ints& places) {
  const Shape count{static_cast<int64_t>(places.size())};
  return n.b.Op("gather", {x, n.b.Constant(Tensor::FromVector<int64_t>(count, places))},
                {{"axis", axis.index}});
}

Expr Resized(NodeImport& n, Expr x, const Resampling& r, const Axis& axis) {
  if (axis.input < 1) n.Fail("axis ", axis.index, " has no element");
  constexpr int64_t kMostNeighbours = 8;  // indices and weights of four
  if (!x.valid() || !n.Spend(kMostNeighbours * axis.output)) return x;
  const auto inside = [&](int64_t i) { return std::clamp<int64_t>(i, 0, axis.input - 1); };
  std::vector<Ints> places;
  std::vector<std::vector<double>> weights;
  for (int64_t o = 0; o < axis.output; ++o) {
    double place = PlaceOf(r, axis, o);
    if (!std::isfinite(place)) place = 0;
    place = std::clamp(place, -4.0, static_cast<double>(axis.input) + 4);
    int64_t first = 0;
    std::vector<double> w = {1};
    if (r.mode == "nearest") {
      first = NearestOf(r.rounding, place);
    } else {
      w = WeightsOf(r, place, &first);
    }
    places.resize(w.size());
    weights.resize(w.size());
    double sum = 0;
    for (size_t k = 0; k < w.size(); ++k) {
      const int64_t from = first + static_cast<int64_t>(k);
      if (r.exclude_outside && from != inside(from)) w[k] = 0;
      places[k].push_back(inside(from));
      sum += w[k];
    }
    for (size_t k = 0; k < w.size(); ++k)
      weights[k].push_back(r.exclude_outside ? w[k] / sum : w[k]);
  }
  if (r.mode == "nearest") return Picked(n, x, axis, places[0]);
  Ints broadcast(ExtentsOf(x).size(), 1);
  broadcast[static_cast<size_t>(axis.index)] = axis.output;
  Expr y;
  for (size_t k = 0; k < places.size(); ++k) {
    const Tensor share = Tensor::Of(DTypeOf(x), Shape(broadcast), weights[k]);
    const Expr part = Picked(n, x, axis, places[k]) * n.b.Constant(share);
    y = k == 0 ? part : y + part;
  }
  return y;
}

// upsample2d computes the usual cases in one pass.
bool IsUpsample(const Resampling& r, const std::vector<Axis>& axes, size_t rank) {
  if (rank != 4 || axes.size() > 2 || r.exclude_outside) return false;
  for (const Axis& axis : axes) {
    if (axis.index < 2 || axis.input < 1 || axis.output < 1) return false;
    const double exact = static_cast<double>(axis.output) / static_cast<double>(axis.input);
    if (axis.scale != exact) return false;
  }
  if (r.mode == "nearest") return r.coordinates == "asymmetric" && r.rounding == "floor";
  const bool centred = r.coordinates == "half_pixel" || r.coordinates == "align_corners";
  return r.mode == "linear" && centred;
}

Expr Resample(NodeImport& n, Expr x, const Resampling& r, const std::vector<Axis>& axes) {
  const Ints extents = ExtentsOf(x);
  if (IsUpsample(r, axes, extents.size()) && !axes.empty()) {
    Ints size = {extents[2], extents[3]};
    for (const Axis& axis : axes) size[static_cast<size_t>(axis.index) - 2] = axis.output;
    return n.Result("upsample2d", {x},
                    {{"size", size},
                     {"mode", std::string(r.mode == "linear" ? "bilinear" : "nearest")},
                     {"align_corners", r.coordinates == "align_corners"}});
  }
  for (const Axis& axis : axes) x = Resized(n, x, r, axis);
  return x;
}

// By scales, or by sizes, of some axes; an axis that stays as it is does not count.
std::vector<Axis> AxesFrom(NodeImport& n, const Ints& which, const std::optional<Tensor>& scales,
                           const Ints& sizes) {
  std::vector<Axis> axes;
  const std::string policy = n.String("keep_aspect_ratio_policy", "stretch");
  const size_t given =
      scales.has_value() ? static_cast<size_t>(scales->num_elements()) : sizes.size();
  if (n.ok() && given != which.size()) n.Fail("scales or sizes are not one for each axis");
  if (!n.ok()) return {};
  double common = 0;  // of all axes, under a policy
  for (size_t k = 0; k < which.size(); ++k) {
    const auto i = static_cast<size_t>(n.Axis(which[k]));
    if (!n.ok()) return {};
    const int64_t input = n.shape(0)[i];
    const double scale = scales.has_value()
                             ? scales->at(static_cast<int64_t>(k))
                             : static_cast<double>(sizes[k]) / static_cast<double>(input);
    const double output = scales.has_value() ? std::floor(static_cast<double>(input) * scale)
                                             : static_cast<double>(sizes[k]);
    if (!(scale > 0 && output >= 0 && output <= static_cast<double>(kMaxStaticElements))) {
      n.Fail("axis ", i, " is scaled by ", scale);
      return {};
    }
    axes.push_back({static_cast<int64_t>(i), input, static_cast<int64_t>(output), scale});
    const bool first = k == 0;
    if (policy == "not_larger") common = first ? scale : std::min(common, scale);
    if (policy == "not_smaller") common = first ? scale : std::max(common, scale);
  }
  for (Axis& axis : axes) {
    if (common == 0 || scales.has_value()) break;
    axis.scale = common;
    const double output = std::floor(static_cast<double>(axis.input) * common + 0.5);
    if (output > static_cast<double>(kMaxStaticElements)) {
      n.Fail("axis ", axis.index, " is scaled by ", common);
      return {};
    }
    axis.output = static_cast<int64_t>(output);
  }
  axes.erase(std::remove_if(axes.begin(), axes.end(),
                            [](const Axis& a) { return a.scale == 1 && a.input == a.output; }),
             axes.end());
  return axes;
}

Exprs ImportResize(NodeImport& n) {
  Resampling r;
  r.mode = n.String("mode", "nearest");
  const bool old = n.opset < 11;  // x and scales alone
  r.coordinates = n.String("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  r.rounding = n.String("nearest_mode", old ? "floor" : "round_prefer_floor");
  r.cubic = n.Float("cubic_coeff_a", -0.75);
  r.exclude_outside = n.Bool("exclude_outside", false);
  n.Ignore("extrapolation_value");  // of tf_crop_and_resize
  if (n.Bool("antialias", false)) n.Fail("antialias is not covered");
  if (r.mode != "nearest" && r.mode != "linear" && r.mode != "cubic") {
    n.Fail("mode ", r.mode, " is not covered");
  }
  const bool known = r.coordinates == "asymmetric" || r.coordinates == "align_corners" ||
                     r.coordinates.find("half_pixel") != std::string::npos;
  if (!known) n.Fail("coordinate_transformation_mode ", r.coordinates, " is not covered");
  const Ints which = n.IntList("axes", Range(0, n.rank(0)));
  const int port = old ? 1 : 2;
  std::optional<Tensor> scales;
  if (n.has(port)) scales = n.Static(port);
  const bool by_size = n.has(3) && (!scales.has_value() || scales->num_elements() == 0);
  const Ints sizes = by_size ? n.StaticInts(3) : Ints();
  if (by_size) scales.reset();
  const std::vector<Axis> axes = AxesFrom(n, which, scales, sizes);
  if (!n.ok()) return {};
  return {Resample(n, n.in(0), r, axes)};
}

// Opsets 7 to 9.
Exprs ImportUpsample(NodeImport& n) {
  Resampling r;
  r.mode = n.String("mode", "nearest");
  r.coordinates = "asymmetric";
  r.rounding = "floor";
  if (r.mode != "nearest" && r.mode != "linear") n.Fail("mode ", r.mode, " is not covered");
  std::optional<Tensor> scales;
  if (n.has(1)) scales = n.Static(1);
  if (const auto* list = n.Floats("scales"); list != nullptr) {
    scales = Tensor::Of(DType::kF32, Shape{static_cast<int64_t>(list->size())}, *list);
  }
  const std::vector<Axis> axes = AxesFrom(n, Range(0, n.rank(0)), scales, {});
  if (!n.ok()) return {};
  return {Resample(n, n.in(0), r, axes)};
}

// The coordinates follow the extents, or the scales that the user gave.
void ExportUpsample(NodeExport& n) {
  const bool nearest = n.attrs().GetString("mode") == "nearest";
  const bool corners = n.attrs().GetBool("align_corners");
  const auto& given = n.attrs().Get<std::vector<double>>("scales");
  const Shape &x = n.shape(0), &y = n.node.output_type().shape;
  std::vector<double> scales = {1, 1};
  scales.insert(scales.end(), given.begin(), given.end());
  bool by_scales = !given.empty();
  for (int i = 2; i < 4 && by_scales; ++i) {
    by_scales =
        std::floor(static_cast<double>(x[i]) *
                   static_cast<double>(static_cast<float>(scales[static_cast<size_t>(i)]))) ==
        static_cast<double>(y[i]);
  }
  Names operands = {n.in(0), ""};
  if (by_scales) {
    operands.push_back(n.Constant(Tensor::Of(DType::kF32, Shape{4}, scales)));
  } else {
    operands.emplace_back("");
    operands.push_back(n.Ints({y[0], y[1], y[2], y[3]}));
  }
  n.Give("Resize", operands,
         {{"mode", std::string(nearest ? "nearest" : "linear")},
          {"nearest_mode", std::string("floor")},
          {"coordinate_transformation_mode", std::string(nearest   ? "asymmetric"
                                                         : corners ? "align_corners"
                                                                   : "half_pixel")}});
}

}  // namespace

void AddResizeRules(Rules& rules) {
  rules.Import("Resize", "upsample2d, or gather, mul and add for each axis", ImportResize,
               "antialias; tf_crop_and_resize");
  rules.Import("Upsample", "upsample2d, or gather, mul and add for each axis", ImportUpsample);
  rules.Export("upsample2d", "Resize", ExportUpsample);
}

}  // namespace halftone::onnx
