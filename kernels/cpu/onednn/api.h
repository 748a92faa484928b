// oneDNN 2.6 (Debian 12) and 3.x (Debian 13) with one face, that of 3.x: the only file that asks
// which of the two it is. 2.6 describes a primitive in two steps, an operation descriptor and then
// a primitive descriptor; 3.x in one. Pooling and softmax of 3.x are what 2.6 calls *_v2. Source:
// oneDNN 3.x developer guide, "Transition from v2.x to v3.x".
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>

namespace halftone::kernels::onednn {

#if DNNL_VERSION_MAJOR >= 3

using PoolingForward = dnnl::pooling_forward;
using PoolingBackward = dnnl::pooling_backward;
using SoftmaxForward = dnnl::softmax_forward;
using SoftmaxBackward = dnnl::softmax_backward;

// A primitive from what its primitive_desc takes between engine and attributes. Empty if the
// library has no implementation; descriptors that contradict each other throw dnnl::error.
template <typename Primitive, typename... Args>
typename Primitive::primitive_desc Describe(const dnnl::engine& engine,
                                            const dnnl::primitive_attr& attr, const Args&... args) {
  return typename Primitive::primitive_desc(engine, args..., attr, /*allow_empty=*/true);
}

// The same of a backward primitive; `forward` describes the forward one.
template <typename Primitive, typename Forward, typename... Args>
typename Primitive::primitive_desc DescribeBackward(const dnnl::engine& engine,
                                                    const dnnl::primitive_attr& attr,
                                                    const Forward& forward, const Args&... args) {
  return Describe<Primitive>(engine, attr, args..., forward);
}

// Elementwise over one descriptor for all operands.
inline dnnl::eltwise_forward::primitive_desc DescribeEltwise(const dnnl::engine& engine,
                                                             dnnl::algorithm algorithm,
                                                             const dnnl::memory::desc& x) {
  return {engine, dnnl::prop_kind::forward_training, algorithm, x, x, 0.f, 0.f};
}
inline dnnl::eltwise_backward::primitive_desc DescribeEltwiseBackward(
    const dnnl::engine& engine, const dnnl::eltwise_forward::primitive_desc& forward,
    dnnl::algorithm algorithm, const dnnl::memory::desc& dy, const dnnl::memory::desc& x) {
  return {engine, algorithm, dy, dy, x, 0.f, 0.f, forward};
}

inline dnnl::memory::dims DimsOf(const dnnl::memory::desc& desc) { return desc.get_dims(); }

// Bytes that differ for descriptors that do.
inline std::string BlobOf(dnnl::memory::desc desc) {
  const auto blob = desc.get_blob();  // which is not const
  return {blob.begin(), blob.end()};
}

#else

using PoolingForward = dnnl::pooling_v2_forward;
using PoolingBackward = dnnl::pooling_v2_backward;
using SoftmaxForward = dnnl::softmax_v2_forward;
using SoftmaxBackward = dnnl::softmax_v2_backward;

template <typename Primitive, typename... Args>
typename Primitive::primitive_desc Describe(const dnnl::engine& engine,
                                            const dnnl::primitive_attr& attr, const Args&... args) {
  return typename Primitive::primitive_desc(typename Primitive::desc(args...), attr, engine,
                                            /*allow_empty=*/true);
}

template <typename Primitive, typename Forward, typename... Args>
typename Primitive::primitive_desc DescribeBackward(const dnnl::engine& engine,
                                                    const dnnl::primitive_attr& attr,
                                                    const Forward& forward, const Args&... args) {
  return typename Primitive::primitive_desc(typename Primitive::desc(args...), attr, engine,
                                            forward, /*allow_empty=*/true);
}

inline dnnl::eltwise_forward::primitive_desc DescribeEltwise(const dnnl::engine& engine,
                                                             dnnl::algorithm algorithm,
                                                             const dnnl::memory::desc& x) {
  return {{dnnl::prop_kind::forward_training, algorithm, x, 0.f, 0.f}, engine};
}
inline dnnl::eltwise_backward::primitive_desc DescribeEltwiseBackward(
    const dnnl::engine& engine, const dnnl::eltwise_forward::primitive_desc& forward,
    dnnl::algorithm algorithm, const dnnl::memory::desc& dy, const dnnl::memory::desc& x) {
  return {{algorithm, dy, x, 0.f, 0.f}, engine, forward};
}

inline dnnl::memory::dims DimsOf(const dnnl::memory::desc& desc) { return desc.dims(); }

inline std::string BlobOf(const dnnl::memory::desc& desc) {
  return {reinterpret_cast<const char*>(&desc.data), sizeof desc.data};
}

#endif

}  // namespace halftone::kernels::onednn
