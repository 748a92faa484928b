#include <algorithm>

#include "halftone/graph/nn/functional.h"

namespace halftone::nn {
namespace {

using Ints = std::vector<int64_t>;

// What the options of any number of axes say.
struct ConvArgs {
  Ints stride, padding, dilation;
  int64_t groups;
  Ints output_padding = {};  // of a transposed one

  ir::Attributes attributes() const {
    return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}};
  }
};

// That x and weight are [N,C,..] and [O,C,..] with `dims` axes behind; if not, an error of the
// trace.
bool CheckRanks(const char* op, int dims, const Value& x, const Value& weight, Loc loc) {
  if (!x.valid() || !weight.valid()) return false;
  for (const auto& [name, value] : {std::pair("x", x), std::pair("weight", weight)}) {
    if (value.rank() == dims + 2) continue;
    Fail(loc, InvalidArgument(op, ": ", name, " is ", Name(value.dtype()), value.shape(),
                              "; expected rank ", dims + 2));
    return false;
  }
  return true;
}

// Along one axis as along the width of rows of height 1, which lie in memory as they are.
ConvArgs Flat(const ConvArgs& args) {
  const auto behind = [](int64_t of_height, const Ints& of_length) {
    return of_length.empty() ? Ints() : Ints{of_height, of_length[0]};
  };
  return {behind(1, args.stride), behind(0, args.padding), behind(1, args.dilation), args.groups,
          behind(0, args.output_padding)};
}
Value Flat(const Value& x, Loc loc) { return unsqueeze(x, 2, loc); }

// `values` lie in lo..hi; if not, an error of the trace.
bool CheckRange(const char* op, const char* name, const Ints& values, int64_t lo, Loc loc) {
  constexpr int64_t kMax = int64_t{1} << 20;  // that of the op
  for (const int64_t value : values) {
    if (value >= lo && value <= kMax) continue;
    Fail(loc, InvalidArgument(op, ": ", name, " is ", value, "; expected at least ", lo,
                              " and at most ", kMax));
    return false;
  }
  return true;
}

// The result's extent along every axis of x [N,C,..] and weight [C,O/groups,..]; empty after an
// error of the trace.
Ints TransposedShape(const char* op, const Value& x, const Value& weight, const ConvArgs& args,
                     Loc loc) {
  if (!CheckRange(op, "stride", args.stride, 1, loc) ||
      !CheckRange(op, "padding", args.padding, 0, loc) ||
      !CheckRange(op, "dilation", args.dilation, 1, loc)) {
    return {};
  }
  const int64_t c = x.shape()[1];
  if (args.groups < 1 || args.groups > std::max<int64_t>(c, 1) || c % args.groups != 0 ||
      weight.shape()[0] != c) {
    Fail(loc, InvalidArgument(op, ": weight is ", weight.shape(), " for x ", x.shape(), " in ",
                              args.groups, " groups; expected [", c,
                              ",O/groups,..] and groups that divide ", c));
    return {};
  }
  Ints shape = {x.shape()[0], weight.shape()[1] * args.groups};
  for (size_t i = 0; i < args.stride.size(); ++i) {
    const int64_t stride = args.stride[i], dilation = args.dilation[i];
    const int64_t added = args.output_padding[i], limit = std::max(stride, dilation);
    const int axis = static_cast<int>(i) + 2;
    if (added < 0 || added >= limit) {
      Fail(loc, InvalidArgument(op, ": output_padding is ", added, "; expected 0..", limit - 1,
                                ", below stride ", stride, " or dilation ", dilation));
      return {};
    }
    shape.push_back((x.shape()[axis] - 1) * stride - 2 * args.padding[i] +
                    dilation * (weight.shape()[axis] - 1) + added + 1);
    if (shape.back() < 1) {
      Fail(loc, InvalidArgument(op, ": the result's extent along axis ", axis, " is ", shape.back(),
                                "; expected at least 1: a smaller padding or a larger input"));
      return {};
    }
  }
  return shape;
}

// x with zeros behind it. An output_padding of `stride` or more reaches to where further elements
// of x would be read.
Value WithZerosBehind(Value x, const ConvArgs& args, Loc loc) {
  for (size_t i = 0; i < args.stride.size(); ++i) {
    const int64_t rows = args.output_padding[i] / args.stride[i];
    if (rows == 0) continue;
    Ints shape(x.shape().dims().begin(), x.shape().dims().end());
    shape[i + 2] = rows;
    const Value zeros =
        broadcast_to(constant(Tensor::Full(x.dtype(), Shape{}, 0), loc), shape, loc);
    x = concat({x, zeros}, static_cast<int64_t>(i) + 2, loc);
  }
  return x;
}

Value Convolution(int dims, const Value& x, const Value& weight, const OptionalValue& bias,
                  const ConvArgs& args, Loc loc) {
  return internal::Promoted(Concat("conv", dims, "d"), internal::Present({x, weight, bias}),
                            args.attributes(), loc);
}

Value Transposed(const char* op, int dims, const Value& x, const Value& weight,
                 const OptionalValue& bias, const ConvArgs& args, Loc loc) {
  const Ints shape = TransposedShape(op, x, weight, args, loc);
  if (shape.empty()) return {};
  ir::Attributes attrs = args.attributes();
  attrs.Set("shape", shape);
  const Value y =
      internal::Promoted(Concat("conv", dims, "d_grad_input"),
                         {WithZerosBehind(x, args, loc), weight}, std::move(attrs), loc);
  if (!bias.has_value() || !bias.value().valid()) return y;
  if (bias.value().shape() != Shape{shape[1]}) {
    return Fail(loc, InvalidArgument(op, ": bias is ", Name(bias.value().dtype()),
                                     bias.value().shape(), "; expected ", Shape{shape[1]}));
  }
  Ints along_channels(dims + 1, 1);
  along_channels[0] = shape[1];
  return add({y, loc}, {reshape(bias.value(), along_channels, loc), loc});
}

}  // namespace

Value conv1d(const Value& x, const Value& weight, const OptionalValue& bias,
             const Conv1dOptions& options, Loc loc) {
  if (!CheckRanks("conv1d", 1, x, weight, loc)) return {};
  const ConvArgs args{{options.stride}, {options.padding}, {options.dilation}, options.groups};
  return squeeze(Convolution(2, Flat(x, loc), Flat(weight, loc), bias, Flat(args), loc), 2, loc);
}

Value conv2d(const Value& x, const Value& weight, const OptionalValue& bias,
             const Conv2dOptions& options, Loc loc) {
  return Convolution(
      2, x, weight, bias,
      {options.stride.ints(), options.padding.ints(), options.dilation.ints(), options.groups},
      loc);
}

Value conv3d(const Value& x, const Value& weight, const OptionalValue& bias,
             const Conv3dOptions& options, Loc loc) {
  return Convolution(
      3, x, weight, bias,
      {options.stride.ints(), options.padding.ints(), options.dilation.ints(), options.groups},
      loc);
}

Value conv_transpose1d(const Value& x, const Value& weight, const OptionalValue& bias,
                       const ConvTranspose1dOptions& options, Loc loc) {
  constexpr char kName[] = "conv_transpose1d";
  if (!CheckRanks(kName, 1, x, weight, loc)) return {};
  const ConvArgs args{{options.stride},
                      {options.padding},
                      {options.dilation},
                      options.groups,
                      {options.output_padding}};
  const Value y = Transposed(kName, 2, Flat(x, loc), Flat(weight, loc), bias, Flat(args), loc);
  return squeeze(y, 2, loc);
}

Value conv_transpose2d(const Value& x, const Value& weight, const OptionalValue& bias,
                       const ConvTranspose2dOptions& options, Loc loc) {
  constexpr char kName[] = "conv_transpose2d";
  if (!CheckRanks(kName, 2, x, weight, loc)) return {};
  return Transposed(kName, 2, x, weight, bias,
                    {options.stride.ints(), options.padding.ints(), options.dilation.ints(),
                     options.groups, options.output_padding.ints()},
                    loc);
}

Value conv_transpose3d(const Value& x, const Value& weight, const OptionalValue& bias,
                       const ConvTranspose3dOptions& options, Loc loc) {
  constexpr char kName[] = "conv_transpose3d";
  if (!CheckRanks(kName, 3, x, weight, loc)) return {};
  return Transposed(kName, 3, x, weight, bias,
                    {options.stride.ints(), options.padding.ints(), options.dilation.ints(),
                     options.groups, options.output_padding.ints()},
                    loc);
}

}  // namespace halftone::nn
