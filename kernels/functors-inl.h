// The formula of every elementwise op of floats, once; kernels of all devices are made of them
// (graph/ops/support/elementwise.def says of which op each is), and any formula may call another.
// On the CPU V is a Highway vector of f32, in device code float or double, in reference kernels
// double. The including file provides V, its mask M and the overload set
//
//   Add Sub Mul Div Neg Abs Sqrt Floor, Lt Le Gt Eq IsFinite (false for NaN), Not, Select(M, V, V),
//   Splat(double), ExpV LogV TanhV CosV SinV SigmoidV ErfV NormalTailV ProductErrorV, kF32
//
// (kernels/cpu/simd/math-inl.h, kernels/scalar_math.inc), and HT_FUNCTOR_INLINE. No Ne: Highway
// 1.0.3 has NaN != NaN false. Included once per type or SIMD target.
//
// What an op has as numbers, attributes, are members of its functor, made by With.
//
// gelu and silu keep their relative error below 0 too, down to where they underflow: no 1 + tanh or
// 1 + erf, which cancel there. What decays like e^-q is scaled by e^(-q/2) twice, since e^-q is
// subnormal, and short of digits, before the result is. Limits at -inf are -0: arguments are
// clamped to where the exponential is 0, and 0 * inf does not occur.
#if defined(HALFTONE_FUNCTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_FUNCTORS_INL_H_
#undef HALFTONE_FUNCTORS_INL_H_
#else
#define HALFTONE_FUNCTORS_INL_H_
#endif

#ifndef HT_FUNCTOR_INLINE
#define HT_FUNCTOR_INLINE HWY_INLINE
#endif

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

// F with as many of the numbers as it has members.
template <typename F>
HT_FUNCTOR_INLINE F With(V first, V second) {
  if constexpr (requires { F{first, second}; }) {
    return F{first, second};
  } else if constexpr (requires { F{first}; }) {
    return F{first};
  } else {
    return F{};
  }
}

// Unary: y = f(x). NaN goes through all of them.
// +0 of -0 too, so that a maximum and relu may trade places.
struct ReluF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return Select(Le(x, Splat(0.0)), Splat(0.0), x); }
};
struct Relu6F {
  HT_FUNCTOR_INLINE V operator()(V x) const {
    return ReluF()(Select(Gt(x, Splat(6.0)), Splat(6.0), x));
  }
};
struct HardtanhF {
  V min_val, max_val;
  HT_FUNCTOR_INLINE V operator()(V x) const {
    return Select(Lt(x, min_val), min_val, Select(Gt(x, max_val), max_val, x));
  }
};
struct LeakyReluF {
  V negative_slope;
  HT_FUNCTOR_INLINE V operator()(V x) const {
    return Select(Gt(x, Splat(0.0)), x, Mul(negative_slope, x));
  }
};
struct HardsigmoidF {
  HT_FUNCTOR_INLINE V operator()(V x) const {
    return Div(Relu6F()(Add(x, Splat(3.0))), Splat(6.0));
  }
};
// 0 below -3 without a product, which would be NaN at -inf.
struct HardswishF {
  HT_FUNCTOR_INLINE V operator()(V x) const {
    return Select(Le(x, Splat(-3.0)), Splat(0.0), Mul(x, HardsigmoidF()(x)));
  }
};
struct SigmoidF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return SigmoidV(x); }
};
struct TanhF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return TanhV(x); }
};
// x within [-bound, bound]; NaN stays NaN.
HT_FUNCTOR_INLINE V Clamped(V x, double bound) {
  return Select(Lt(x, Splat(-bound)), Splat(-bound), Select(Gt(x, Splat(bound)), Splat(bound), x));
}

// e^-(q + error), where q is rounded and `error` what that took away: in f32 a rounded q of 90
// would cost 6 digits.
HT_FUNCTOR_INLINE V ExpOfNegated(V q, V error) {
  const V y = ExpV(Neg(q));
  return Sub(y, Mul(y, Mul(error, Sub(Splat(1.0), Mul(Splat(0.5), error)))));
}

// x sigmoid(v) for v of the sign of x: c is x clamped, h = e^(-|v| / 2).
HT_FUNCTOR_INLINE V Gated(V x, V c, V h) {
  return Div(Select(Lt(x, Splat(0.0)), Mul(Mul(c, h), h), x), Add(Splat(1.0), Mul(h, h)));
}
// Its derivative; xdv = c dv/dx.
HT_FUNCTOR_INLINE V GatedSlope(V x, V h, V xdv) {
  const V one = Splat(1.0), s = Div(one, Add(one, Mul(h, h)));  // sigmoid(|v|)
  const V below = Mul(Mul(h, s), Mul(h, Add(one, Mul(xdv, s))));
  const V above = Mul(s, Add(one, Mul(xdv, Mul(Mul(h, h), s))));
  return Select(Lt(x, Splat(0.0)), below, above);
}

// `slope`, but within 1/32 of its zero, where its terms cancel, the series d (a + b d + c d^2 +
// e d^3) in the distance d from it. In f64 what is left of the terms is enough.
HT_FUNCTOR_INLINE V AroundZero(V x, V slope, double zero, double a, double b, double c, double e) {
  if (!kF32) return slope;
  const double high = static_cast<float>(zero);
  const V d = Sub(Sub(x, Splat(high)), Splat(zero - high));
  V series = Add(Mul(Splat(e), d), Splat(c));
  series = Add(Mul(series, d), Splat(b));
  series = Mul(Add(Mul(series, d), Splat(a)), d);
  return Select(Lt(Abs(d), Splat(1.0 / 32)), series, slope);
}

// Elfwing, Uchibe, Doya, "Sigmoid-weighted linear units", arXiv:1702.03118.
struct SiluF {
  static constexpr double kBound = 2000;  // e^(-kBound / 2) is 0 in f64
  HT_FUNCTOR_INLINE V operator()(V x) const {
    const V c = Clamped(x, kBound);
    return Gated(x, c, ExpV(Mul(Splat(-0.5), Abs(c))));
  }
};
// x * Phi(x), Hendrycks and Gimpel, "Gaussian error linear units", arXiv:1606.08415.
struct GeluErfF {
  static constexpr double kBound = 60;  // e^(-kBound^2 / 4) is 0 in f64
  // e^(-a^2 / 4) for a in [0, kBound].
  static HT_FUNCTOR_INLINE V RootOfDensity(V a) {
    const V b = Mul(a, Splat(0.5)), q = Mul(b, b);
    return ExpOfNegated(q, ProductErrorV(b, b, q));
  }
  HT_FUNCTOR_INLINE V operator()(V x) const {
    const V c = Clamped(x, kBound), a = Abs(c), h = RootOfDensity(a);
    const V tail = Mul(Mul(c, h), Mul(h, NormalTailV(a)));  // x Phi(-|x|)
    return Select(Gt(x, Splat(0.0)), Sub(x, tail), tail);
  }
};
// Its tanh form, section 2 of the same paper: x/2 (1 + tanh(v/2)) = x sigmoid(v) with v = 2
// sqrt(2/pi) (x + 0.044715 x^3).
struct GeluTanhF {
  static constexpr double kBound = 60;
  static constexpr double kLinear = 1.5957691216057308, kCubic = 0.044715 * kLinear;
  // e^(-v/2) for c in [-kBound, kBound]; square: c^2.
  static HT_FUNCTOR_INLINE V RootOfGate(V c, V square) {
    // v = c (kLinear + kCubic c^2), where each rounding leaves its error in `rest`.
    constexpr double kHighLinear = static_cast<float>(kLinear);
    constexpr double kHighCubic = static_cast<float>(kCubic);
    const V a = Abs(c), cubic = Mul(Splat(kHighCubic), square);
    V rest = Add(ProductErrorV(Splat(kHighCubic), square, cubic),
                 Add(Mul(Splat(kCubic - kHighCubic), square),
                     Mul(Splat(kCubic), ProductErrorV(c, c, square))));
    const V factor = Add(cubic, Splat(kHighLinear));
    rest =
        Add(rest, Add(Sub(Splat(kHighLinear), Sub(factor, cubic)), Splat(kLinear - kHighLinear)));
    const V v = Mul(factor, a);
    rest = Add(ProductErrorV(factor, a, v), Mul(rest, a));
    return ExpOfNegated(Mul(Splat(0.5), v), Mul(Splat(0.5), rest));
  }
  HT_FUNCTOR_INLINE V operator()(V x) const {
    const V c = Clamped(x, kBound);
    return Gated(x, c, RootOfGate(c, Mul(c, c)));
  }
};
struct ExpF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return ExpV(x); }
};
struct LogF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return LogV(x); }
};
// What rounding u = 1 + x costs cancels in log(u) / (u - 1). Source: Goldberg, "What every computer
// scientist should know about floating-point arithmetic", theorem 4.
struct Log1pF {
  HT_FUNCTOR_INLINE V operator()(V x) const {
    const V u = Add(Splat(1.0), x), kept = Sub(u, Splat(1.0)), log = LogV(u);
    const V y = Select(Eq(kept, Splat(0.0)), x, Mul(log, Div(x, kept)));
    return Select(IsFinite(u), y, log);
  }
};
// The same for u = e^x: (u - 1) / log(u). Source: Higham, "Accuracy and stability of numerical
// algorithms", 2nd edition, section 1.14.1 (Kahan).
struct Expm1F {
  HT_FUNCTOR_INLINE V operator()(V x) const {
    const V one = Splat(1.0), u = ExpV(x), less = Sub(u, one);
    const V y = Select(Eq(u, one), x, Mul(less, Div(x, LogV(u))));
    // -1 where u is so small that its own digits, and then its logarithm, are none.
    return Select(Gt(less, Splat(-1.0)), Select(IsFinite(u), y, u), less);
  }
};
// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|): nothing overflows, and both terms keep their digits.
struct SoftplusF {
  HT_FUNCTOR_INLINE V operator()(V x) const {
    const V rest = Log1pF()(ExpV(Neg(Abs(x))));
    return Add(Select(Gt(x, Splat(0.0)), x, Splat(0.0)), rest);
  }
};
struct LogSigmoidF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return Neg(SoftplusF()(Neg(x))); }
};
// With n = e^x (e^x + 2), tanh(log(1 + e^x)) is n / (n + 2); above 0 the same times e^-2x. h is
// e^(-|x| / 2), g is h^2.
struct MishF {
  static constexpr double kBound = 2000;  // e^(-kBound / 2) is 0 in f64
  HT_FUNCTOR_INLINE V operator()(V x) const {
    const V two = Splat(2.0), c = Clamped(x, kBound), h = ExpV(Mul(Splat(-0.5), Abs(c)));
    const V g = Mul(h, h), below = Div(Add(g, two), Add(Mul(g, Add(g, two)), two));
    const V above = Div(Add(Splat(1.0), Add(g, g)), Denominator(g));
    return Select(Lt(x, Splat(0.0)), Mul(Mul(c, h), Mul(h, below)), Mul(x, above));
  }
  // (n + 2) e^-2x of x > 0.
  static HT_FUNCTOR_INLINE V Denominator(V g) {
    return Add(Splat(1.0), Mul(Add(g, g), Add(Splat(1.0), g)));
  }
};
struct EluF {
  V alpha;
  HT_FUNCTOR_INLINE V operator()(V x) const {
    return Select(Gt(x, Splat(0.0)), x, Mul(alpha, Expm1F()(x)));
  }
};
struct SeluF {
  static constexpr double kScale = 1.0507009873554805, kAlpha = 1.6732632423543773;
  HT_FUNCTOR_INLINE V operator()(V x) const {
    const V below = Mul(Splat(kScale * kAlpha), Expm1F()(x));
    return Select(Gt(x, Splat(0.0)), Mul(Splat(kScale), x), below);
  }
};
// Beyond 1e30 it is 1 to any digit; inf / inf would be NaN.
struct SoftsignF {
  HT_FUNCTOR_INLINE V operator()(V x) const {
    const V c = Clamped(x, 1e30);
    return Div(c, Add(Splat(1.0), Abs(c)));
  }
};
struct SqrtF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return Sqrt(x); }
};
struct NegF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return Neg(x); }
};
struct AbsF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return Abs(x); }
};
struct FloorF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return Floor(x); }
};
struct CeilF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return Neg(Floor(Neg(x))); }
};
// Adding 2^23 (f64: 2^52), whose neighbours are whole, rounds half to even.
struct RoundF {
  HT_FUNCTOR_INLINE V operator()(V x) const {
    const V big = Splat(kF32 ? 0x1p23 : 0x1p52), a = Abs(x), whole = Sub(Add(a, big), big);
    const V rounded = Select(Lt(x, Splat(0.0)), Neg(whole), whole);
    const V kept = Select(Lt(a, big), rounded, x);  // what is large is whole; NaN stays NaN
    return Select(Eq(x, Splat(0.0)), x, kept);      // -0 stays -0
  }
};
struct SignF {
  HT_FUNCTOR_INLINE V operator()(V x) const {
    const V zero = Splat(0.0);
    return Select(Gt(x, zero), Splat(1.0), Select(Lt(x, zero), Splat(-1.0), x));
  }
};
struct SquareF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return Mul(x, x); }
};
struct CosF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return CosV(x); }
};
struct SinF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return SinV(x); }
};
struct ErfF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return ErfV(x); }
};
struct ReciprocalF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return Div(Splat(1.0), x); }
};
struct RsqrtF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return Div(Splat(1.0), Sqrt(x)); }
};

// Gradients: dx = f(saved, dy), where saved is x or y as the op record says.
struct ReluGradF {
  HT_FUNCTOR_INLINE V operator()(V y, V dy) const {
    return Select(Le(y, Splat(0.0)), Splat(0.0), dy);
  }
};
struct Relu6GradF {
  HT_FUNCTOR_INLINE V operator()(V y, V dy) const {
    return Select(Le(Splat(6.0), y), Splat(0.0), ReluGradF()(y, dy));
  }
};
struct HardtanhGradF {
  V min_val, max_val;
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    const V zero = Splat(0.0);
    return Select(Le(x, min_val), zero, Select(Le(max_val, x), zero, dy));
  }
};
struct LeakyReluGradF {
  V negative_slope;
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    return Select(Gt(x, Splat(0.0)), dy, Mul(negative_slope, dy));
  }
};
struct HardsigmoidGradF {
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    return Select(Le(Splat(3.0), Abs(x)), Splat(0.0), Div(dy, Splat(6.0)));
  }
};
struct HardswishGradF {
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    const V three = Splat(3.0), between = Mul(dy, Div(Add(Add(x, x), three), Splat(6.0)));
    return Select(Le(x, Neg(three)), Splat(0.0), Select(Le(three, x), dy, between));
  }
};
struct SigmoidGradF {
  HT_FUNCTOR_INLINE V operator()(V y, V dy) const { return Mul(dy, Mul(y, Sub(Splat(1.0), y))); }
};
struct TanhGradF {
  HT_FUNCTOR_INLINE V operator()(V y, V dy) const { return Mul(dy, Sub(Splat(1.0), Mul(y, y))); }
};
struct SiluGradF {
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    const V c = Clamped(x, SiluF::kBound), h = ExpV(Mul(Splat(-0.5), Abs(c)));
    return Mul(dy, AroundZero(x, GatedSlope(x, h, c), -1.2784645427610738, 0.21781170571982,
                              0.14664879699694695, 0.018874814223782312, -0.015222655223188032));
  }
};
// sigmoid(x), with its digits down to where it underflows.
struct SoftplusGradF {
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    const V one = Splat(1.0), t = ExpV(Neg(Abs(x)));
    return Mul(dy, Div(Select(Lt(x, Splat(0.0)), t, one), Add(one, t)));
  }
};
struct LogSigmoidGradF {
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const { return SoftplusGradF()(Neg(x), dy); }
};
// With t = tanh(log(1 + e^x)) = n / (n + 2) as in MishF, t + 4 x e^x (1 + e^x) / (n + 2)^2.
struct MishGradF {
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    const V one = Splat(1.0), two = Splat(2.0), c = Clamped(x, MishF::kBound);
    const V h = ExpV(Mul(Splat(-0.5), Abs(c))), g = Mul(h, h), four_c = Mul(Splat(4.0), c);
    const V n2 = Add(Mul(g, Add(g, two)), two);
    const V sum = Add(Mul(Add(g, two), n2), Mul(four_c, Add(g, one)));
    const V below = Mul(h, Mul(h, Div(sum, Mul(n2, n2))));
    const V d = MishF::Denominator(g), xdt = Div(Mul(four_c, Mul(g, Mul(g, Add(one, g)))), d);
    const V above = Div(Add(Add(one, Add(g, g)), xdt), d);
    const V slope = Select(Lt(x, Splat(0.0)), below, above);
    return Mul(dy, AroundZero(x, slope, -1.1924312145154952, 0.2669479140495345,
                              0.20473126408010587, 0.041907821043609873, -0.020271822716684246));
  }
};
// e^x is e^(x/2) twice: subnormal, it would be short of digits before the product is.
struct EluGradF {
  V alpha;
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    const V h = ExpV(Mul(Splat(0.5), x));
    return Mul(dy, Select(Gt(x, Splat(0.0)), Splat(1.0), Mul(Mul(alpha, h), h)));
  }
};
struct SeluGradF {
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    return Mul(Splat(SeluF::kScale), EluGradF{Splat(SeluF::kAlpha)}(x, dy));
  }
};
// Divided by 1 + |x| twice: its square may be inf.
struct SoftsignGradF {
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    const V a = Add(Splat(1.0), Abs(x));
    return Div(Div(dy, a), a);
  }
};
// Phi(x) + x phi(x).
struct GeluErfGradF {
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    const V c = Clamped(x, GeluErfF::kBound), a = Abs(c), h = GeluErfF::RootOfDensity(a);
    // Phi(-|x|) - |x| phi(x), with phi(x) = h^2 / sqrt(2 pi).
    const V tail = Mul(h, Mul(h, Sub(NormalTailV(a), Mul(a, Splat(0.39894228040143268)))));
    const V slope = Select(Gt(x, Splat(0.0)), Sub(Splat(1.0), tail), tail);
    return Mul(dy, AroundZero(x, slope, -0.7517915246935645, 0.4314939923140469, 0.388284982990552,
                              -0.018199676398671087, -0.1140082332972217));
  }
};
struct GeluTanhGradF {
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    const V c = Clamped(x, GeluTanhF::kBound), square = Mul(c, c);
    const V xdv = Mul(c, Add(Splat(GeluTanhF::kLinear), Mul(Splat(3 * GeluTanhF::kCubic), square)));
    const V slope = GatedSlope(x, GeluTanhF::RootOfGate(c, square), xdv);
    return Mul(dy, AroundZero(x, slope, -0.7524614220710163, 0.4304000910248585,
                              0.38751844613578895, -0.01578285352184803, -0.11394448308095899));
  }
};

// Binary. maximum and minimum give NaN if either operand is NaN, as in PyTorch.
struct AddF {
  HT_FUNCTOR_INLINE V operator()(V a, V b) const { return Add(a, b); }
};
struct SubF {
  HT_FUNCTOR_INLINE V operator()(V a, V b) const { return Sub(a, b); }
};
struct MulF {
  HT_FUNCTOR_INLINE V operator()(V a, V b) const { return Mul(a, b); }
};
struct DivF {
  HT_FUNCTOR_INLINE V operator()(V a, V b) const { return Div(a, b); }
};
struct MaximumF {
  HT_FUNCTOR_INLINE V operator()(V a, V b) const {
    return Select(Eq(a, a), Select(Gt(a, b), a, b), a);
  }
};
struct MinimumF {
  HT_FUNCTOR_INLINE V operator()(V a, V b) const {
    return Select(Eq(a, a), Select(Lt(a, b), a, b), a);
  }
};
// Not for vectors: Highway has no power.
struct PowF {
  template <typename T>
  HT_FUNCTOR_INLINE T operator()(T a, T b) const {
    return PowV(a, b);
  }
};

// Comparisons: NaN compares unequal and unordered.
struct EqualF {
  HT_FUNCTOR_INLINE M operator()(V a, V b) const { return Eq(a, b); }
};
struct NotEqualF {
  HT_FUNCTOR_INLINE M operator()(V a, V b) const { return Not(Eq(a, b)); }
};
struct LessF {
  HT_FUNCTOR_INLINE M operator()(V a, V b) const { return Lt(a, b); }
};
struct LessEqualF {
  HT_FUNCTOR_INLINE M operator()(V a, V b) const { return Le(a, b); }
};
struct IsFiniteF {
  HT_FUNCTOR_INLINE M operator()(V x) const { return IsFinite(x); }
};

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#endif  // HALFTONE_FUNCTORS_INL_H_
