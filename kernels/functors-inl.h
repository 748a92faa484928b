// The formula of every elementwise op, once: on the CPU V is a Highway vector of f32, in device
// code it is float or double. The including file provides V, M and the overload set Add Sub Mul Div
// Neg Abs Min Max Sqrt Floor Lt Le Gt Ge Eq (the last five false for NaN), Splat (of a double),
// Select, ExpV LogV TanhV CosV SigmoidV ErfV (simd_math-inl.h), and HT_FUNCTOR_INLINE. No Ne:
// Highway 1.0.3 has NaN != NaN false. Included once per SIMD target.
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

// Unary: y = f(x). NaN goes through all of them.
struct ReluF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return Select(Lt(x, Splat(0.0)), Splat(0.0), x); }
};
struct SigmoidF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return SigmoidV(x); }
};
struct TanhF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return TanhV(x); }
};
struct SiluF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return Div(x, Add(Splat(1.0), ExpV(Neg(x)))); }
};
// x * Phi(x), Hendrycks and Gimpel, "Gaussian error linear units", arXiv:1606.08415.
struct GeluErfF {
  HT_FUNCTOR_INLINE V operator()(V x) const {
    const V cdf = Mul(Splat(0.5), Add(Splat(1.0), ErfV(Mul(x, Splat(0.70710678118654752)))));
    return Mul(x, cdf);
  }
};
// Its tanh form, section 2 of the same paper: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
struct GeluTanhF {
  static constexpr double kAlpha = 0.79788456080286536, kBeta = 0.044715;
  HT_FUNCTOR_INLINE V operator()(V x) const {
    const V inner = Mul(Splat(kAlpha), Mul(x, Add(Splat(1.0), Mul(Splat(kBeta), Mul(x, x)))));
    return Mul(Mul(Splat(0.5), x), Add(Splat(1.0), TanhV(inner)));
  }
};
struct ExpF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return ExpV(x); }
};
struct LogF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return LogV(x); }
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
struct CosF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return CosV(x); }
};
struct ErfF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return ErfV(x); }
};
struct ReciprocalF {
  HT_FUNCTOR_INLINE V operator()(V x) const { return Div(Splat(1.0), x); }
};

// Gradients: dx = f(saved, dy), where saved is x or y as the op record says.
struct ReluGradF {
  HT_FUNCTOR_INLINE V operator()(V y, V dy) const {
    return Select(Le(y, Splat(0.0)), Splat(0.0), dy);
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
    const V s = SigmoidV(x);
    return Mul(dy, Mul(s, Add(Splat(1.0), Mul(x, Sub(Splat(1.0), s)))));
  }
};
// Phi(x) + x phi(x).
struct GeluErfGradF {
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    const V cdf = Mul(Splat(0.5), Add(Splat(1.0), ErfV(Mul(x, Splat(0.70710678118654752)))));
    const V pdf = Mul(Splat(0.39894228040143268), ExpV(Mul(Splat(-0.5), Mul(x, x))));
    // x * pdf is inf * 0 at infinity, where the limit is 0.
    const V tail = Select(Eq(pdf, Splat(0.0)), Splat(0.0), Mul(x, pdf));
    return Mul(dy, Add(cdf, tail));
  }
};
struct GeluTanhGradF {
  HT_FUNCTOR_INLINE V operator()(V x, V dy) const {
    const V square = Mul(x, x);
    const V inner = Mul(Splat(GeluTanhF::kAlpha),
                        Mul(x, Add(Splat(1.0), Mul(Splat(GeluTanhF::kBeta), square))));
    const V t = TanhV(inner);
    const V slope =
        Mul(Splat(GeluTanhF::kAlpha), Add(Splat(1.0), Mul(Splat(3.0 * GeluTanhF::kBeta), square)));
    const V sech2 = Sub(Splat(1.0), Mul(t, t));
    const V tail = Select(Eq(sech2, Splat(0.0)), Splat(0.0), Mul(Mul(x, sech2), slope));
    return Mul(dy, Mul(Splat(0.5), Add(Add(Splat(1.0), t), tail)));
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

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#endif  // HALFTONE_FUNCTORS_INL_H_
