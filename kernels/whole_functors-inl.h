// The formulas of whole numbers and bools, for every type T of them: integers wrap, in the width of
// T. NaN does not occur, so comparisons and selections are those of the language.
//
// The including file may define HT_FUNCTOR_INLINE (device code does).
#pragma once

#include <type_traits>

#ifndef HT_FUNCTOR_INLINE
#define HT_WHOLE_FUNCTORS_OWN_INLINE
#define HT_FUNCTOR_INLINE inline
#endif

namespace halftone::kernels::whole {

// Integers wrap: their arithmetic is that of the unsigned type. Types below int would be promoted
// to int and could overflow there.
template <typename T>
using Wrapping =
    std::conditional_t<(sizeof(T) < sizeof(unsigned)), unsigned, std::make_unsigned_t<T>>;

struct NegF {
  template <typename T>
  HT_FUNCTOR_INLINE T operator()(T x) const {
    return static_cast<T>(0 - static_cast<Wrapping<T>>(x));
  }
};
struct AbsF {
  template <typename T>
  HT_FUNCTOR_INLINE T operator()(T x) const {
    return x < 0 ? NegF()(x) : x;
  }
};
struct SignF {
  template <typename T>
  HT_FUNCTOR_INLINE T operator()(T x) const {
    return static_cast<T>(static_cast<int>(x > 0) - static_cast<int>(x < 0));
  }
};

struct AddF {
  template <typename T>
  HT_FUNCTOR_INLINE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct SubF {
  template <typename T>
  HT_FUNCTOR_INLINE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct MulF {
  template <typename T>
  HT_FUNCTOR_INLINE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct SquareF {
  template <typename T>
  HT_FUNCTOR_INLINE T operator()(T x) const {
    return MulF()(x, x);
  }
};
struct MaximumF {
  template <typename T>
  HT_FUNCTOR_INLINE T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct MinimumF {
  template <typename T>
  HT_FUNCTOR_INLINE T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};

struct EqualF {
  template <typename T>
  HT_FUNCTOR_INLINE bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqualF {
  template <typename T>
  HT_FUNCTOR_INLINE bool operator()(T a, T b) const {
    return a != b;
  }
};
struct LessF {
  template <typename T>
  HT_FUNCTOR_INLINE bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqualF {
  template <typename T>
  HT_FUNCTOR_INLINE bool operator()(T a, T b) const {
    return a <= b;
  }
};

// Of truth values: whatever is not 0 is true.
struct AndF {
  template <typename T>
  HT_FUNCTOR_INLINE bool operator()(T a, T b) const {
    return a != 0 && b != 0;
  }
};
struct OrF {
  template <typename T>
  HT_FUNCTOR_INLINE bool operator()(T a, T b) const {
    return a != 0 || b != 0;
  }
};
struct NotF {
  template <typename T>
  HT_FUNCTOR_INLINE bool operator()(T x) const {
    return x == 0;
  }
};

}  // namespace halftone::kernels::whole

#ifdef HT_WHOLE_FUNCTORS_OWN_INLINE
#undef HT_WHOLE_FUNCTORS_OWN_INLINE
#undef HT_FUNCTOR_INLINE
#endif
