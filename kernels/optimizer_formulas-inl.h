// The formula of every optimizer update, once; its hyper-parameters and states are in
// graph/ops/support/optimizers.def. Included inside a namespace that has what functors-inl.h asks
// for: V (a Highway vector of f32, float or double), Splat, Select, the arithmetic, kF32; with
// HT_FUNCTOR_INLINE and, outside, <cmath>, <type_traits> and update_hypers.h. Each such namespace
// gets its own, so there is no guard, not by HWY_TARGET_TOGGLE either.
//
// Formula<NameUpdate> holds what one step multiplies with. Of(hyper, lr, step) computes it in f64
// and rounds it once to the type of an element. Its operator()<kSet>(param, grad, states) gives the
// new parameter and puts the new states in place of the old; kSet says which states there are.
// Order of operations: PyTorch's for one tensor (the descriptions give the pages).

// The type of one element.
using Element = std::conditional_t<kF32, float, double>;

// The gradient, unscaled and clipped by norm, brought into -clip_value..clip_value where that is
// above 0; NaN passes. `inv_scale` and `clip` are two factors, so that it is rounded twice.
struct TrueGradient {
  Element inv_scale, clip, clip_value;

  HT_FUNCTOR_INLINE V operator()(V scaled) const {
    const V g = Mul(Mul(scaled, Splat(inv_scale)), Splat(clip));
    if (!(clip_value > 0)) return g;
    const V largest = Splat(clip_value), smallest = Splat(-clip_value);
    return Select(Gt(g, largest), largest, Select(Lt(g, smallest), smallest, g));
  }
};

template <typename Update>
struct Formula;

template <>
struct Formula<ops::SgdUpdate> {
  using State = ops::SgdState;
  Element lr, momentum, one_minus_dampening, weight_decay;
  bool nesterov, first;  // first: the buffer starts as the gradient

  static HT_FUNCTOR_INLINE Formula Of(const ops::SgdUpdate& h, double lr, double step) {
    return {static_cast<Element>(lr),
            static_cast<Element>(h.momentum),
            static_cast<Element>(1 - h.dampening),
            static_cast<Element>(h.weight_decay),
            h.nesterov,
            step == 1};
  }
  template <unsigned kSet>
  HT_FUNCTOR_INLINE V operator()(V p, V g, V* states) const {
    if (weight_decay != 0) g = Add(g, Mul(Splat(weight_decay), p));
    if constexpr (ops::kHasState<kSet, State::momentum_buffer>) {
      V& buffer = states[State::momentum_buffer];
      buffer = first ? g : Add(Mul(Splat(momentum), buffer), Mul(Splat(one_minus_dampening), g));
      g = nesterov ? Add(g, Mul(Splat(momentum), buffer)) : buffer;
    }
    return Sub(p, Mul(Splat(lr), g));
  }
};

// Adam, and AdamW where `decoupled`.
template <>
struct Formula<ops::AdamUpdate> {
  using State = ops::AdamState;
  Element one_minus_beta1, beta2, one_minus_beta2, eps;
  Element weight_decay;  // added to the gradient; 0 when decoupled
  Element decay;         // the parameter is multiplied by it; 1 unless decoupled
  Element step_size;     // lr / (1 - beta1^step)
  Element root_correction;

  static HT_FUNCTOR_INLINE Formula Of(const ops::AdamUpdate& h, double lr, double step) {
    return {static_cast<Element>(1 - h.beta1),
            static_cast<Element>(h.beta2),
            static_cast<Element>(1 - h.beta2),
            static_cast<Element>(h.eps),
            h.decoupled ? Element{0} : static_cast<Element>(h.weight_decay),
            h.decoupled ? static_cast<Element>(1 - lr * h.weight_decay) : Element{1},
            static_cast<Element>(lr / (1 - pow(h.beta1, step))),
            static_cast<Element>(sqrt(1 - pow(h.beta2, step)))};
  }
  template <unsigned kSet>
  HT_FUNCTOR_INLINE V operator()(V p, V g, V* states) const {
    V &m = states[State::exp_avg], &v = states[State::exp_avg_sq];
    if (weight_decay != 0) g = Add(g, Mul(Splat(weight_decay), p));
    if (decay != 1) p = Mul(p, Splat(decay));
    m = Add(m, Mul(Splat(one_minus_beta1), Sub(g, m)));
    v = Add(Mul(v, Splat(beta2)), Mul(Splat(one_minus_beta2), Mul(g, g)));
    const V denominator = Add(Div(Sqrt(v), Splat(root_correction)), Splat(eps));
    return Sub(p, Mul(Splat(step_size), Div(m, denominator)));
  }
};

template <>
struct Formula<ops::RmspropUpdate> {
  using State = ops::RmspropState;
  Element lr, alpha, one_minus_alpha, eps, weight_decay, momentum;

  static HT_FUNCTOR_INLINE Formula Of(const ops::RmspropUpdate& h, double lr, double /*step*/) {
    return {static_cast<Element>(lr),
            static_cast<Element>(h.alpha),
            static_cast<Element>(1 - h.alpha),
            static_cast<Element>(h.eps),
            static_cast<Element>(h.weight_decay),
            static_cast<Element>(h.momentum)};
  }
  template <unsigned kSet>
  HT_FUNCTOR_INLINE V operator()(V p, V g, V* states) const {
    if (weight_decay != 0) g = Add(g, Mul(Splat(weight_decay), p));
    V& square = states[State::square_avg];
    square = Add(Mul(square, Splat(alpha)), Mul(Splat(one_minus_alpha), Mul(g, g)));
    V variance = square;
    if constexpr (ops::kHasState<kSet, State::grad_avg>) {
      V& mean = states[State::grad_avg];
      mean = Add(mean, Mul(Splat(one_minus_alpha), Sub(g, mean)));
      variance = Sub(square, Mul(mean, mean));
      // Rounding may leave less than 0 where the gradient hardly changes; PyTorch's root is NaN.
      variance = Select(Lt(variance, Splat(0.0)), Splat(0.0), variance);
    }
    V direction = Div(g, Add(Sqrt(variance), Splat(eps)));
    if constexpr (ops::kHasState<kSet, State::momentum_buffer>) {
      V& buffer = states[State::momentum_buffer];
      buffer = Add(Mul(Splat(momentum), buffer), direction);
      direction = buffer;
    }
    return Sub(p, Mul(Splat(lr), direction));
  }
};
