// blas_emu.cpp - the part of cuBLASLt that the framework uses. NVIDIA's header gives types and prototypes.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include "halftone/tests/cuda_emulation/library_work.h"
namespace {
struct Layout { cudaDataType type; std::uint64_t rows, cols; std::int64_t ld; std::int32_t order = CUBLASLT_ORDER_COL, batch = 1; std::int64_t stride = 0; };
struct Desc { cublasComputeType_t compute; cudaDataType scale; cublasOperation_t ta = CUBLAS_OP_N, tb = CUBLAS_OP_N; cublasLtEpilogue_t ep = CUBLASLT_EPILOGUE_DEFAULT; const void* bias = nullptr; cudaDataType bias_type = cudaDataType(-1); };
struct Pref { std::uint64_t ws = 0; };
template <class T> T* P(void* p) { return static_cast<T*>(p); }
Layout& L(cublasLtMatrixLayout_t p) { return *reinterpret_cast<Layout*>(p); }
Desc& De(cublasLtMatmulDesc_t p) { return *reinterpret_cast<Desc*>(p); }
std::size_t Size(cudaDataType t) { return t == CUDA_R_32F ? 4 : t == CUDA_R_64F ? 8 : 2; }
double Get(const void* p, cudaDataType t, std::size_t i) {
  switch (t) { case CUDA_R_32F: return static_cast<const float*>(p)[i]; case CUDA_R_64F: return static_cast<const double*>(p)[i]; case CUDA_R_16F: return __half2float(static_cast<const __half*>(p)[i]); case CUDA_R_16BF: return __bfloat162float(static_cast<const __nv_bfloat16*>(p)[i]); default: std::abort(); }
}
void Put(void* p, cudaDataType t, std::size_t i, double v) {
  switch (t) { case CUDA_R_32F: static_cast<float*>(p)[i] = float(v); break; case CUDA_R_64F: static_cast<double*>(p)[i] = v; break; case CUDA_R_16F: static_cast<__half*>(p)[i] = __float2half(float(v)); break; case CUDA_R_16BF: static_cast<__nv_bfloat16*>(p)[i] = __float2bfloat16(float(v)); break; default: std::abort(); }
}
cublasStatus_t Why(cublasStatus_t s, const char* w) { std::fprintf(stderr, "emu cublasLt: %s\n", w); return s; }
// What both the heuristic and the product check.
cublasStatus_t Check(const Desc& d, const Layout& a, const Layout& b, const Layout& c) {
  const std::uint64_t m = d.ta == CUBLAS_OP_N ? a.rows : a.cols, k = d.ta == CUBLAS_OP_N ? a.cols : a.rows, k2 = d.tb == CUBLAS_OP_N ? b.rows : b.cols, n = d.tb == CUBLAS_OP_N ? b.cols : b.rows;
  if (m != c.rows || n != c.cols || k != k2) return Why(CUBLAS_STATUS_INVALID_VALUE, "shapes do not fit");
  for (auto* l : {&a, &b, &c}) if (l->ld < std::int64_t(l->order == CUBLASLT_ORDER_COL ? l->rows : l->cols)) return Why(CUBLAS_STATUS_INVALID_VALUE, "leading dimension too small");
  if (a.type != b.type) return Why(CUBLAS_STATUS_NOT_SUPPORTED, "A and B of different types");
  if (a.batch != c.batch || b.batch != c.batch) return Why(CUBLAS_STATUS_INVALID_VALUE, "batch counts differ");
  const bool half = a.type == CUDA_R_16F || a.type == CUDA_R_16BF;
  if (half && !(d.compute == CUBLAS_COMPUTE_32F || (a.type == CUDA_R_16F && d.compute == CUBLAS_COMPUTE_16F))) return Why(CUBLAS_STATUS_NOT_SUPPORTED, "compute type");
  if (half && c.type != a.type && c.type != CUDA_R_32F) return Why(CUBLAS_STATUS_NOT_SUPPORTED, "output type");
  return CUBLAS_STATUS_SUCCESS;
}
}  // namespace
extern "C" {
const char* cublasLtGetStatusString(cublasStatus_t s) { return s == CUBLAS_STATUS_SUCCESS ? "success" : s == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "error"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* h) { *h = reinterpret_cast<cublasLtHandle_t>(new int(0)); return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t h) { delete reinterpret_cast<int*>(h); return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t c, cudaDataType_t s) { *d = reinterpret_cast<cublasLtMatmulDesc_t>(new Desc{c, s}); return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { delete &De(d); return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t dd, cublasLtMatmulDescAttributes_t a, const void* p, size_t n) {
  Desc& d = De(dd);
  auto set = [&](auto& f) { if (n != sizeof f) return Why(CUBLAS_STATUS_INVALID_VALUE, "attribute size"); std::memcpy(&f, p, n); return CUBLAS_STATUS_SUCCESS; };
  switch (a) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(d.ta); case CUBLASLT_MATMUL_DESC_TRANSB: return set(d.tb);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(d.ep); case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(d.bias); case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return set(d.bias_type);
    default: return Why(CUBLAS_STATUS_NOT_SUPPORTED, "matmul attribute not emulated");
  }
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* l, cudaDataType t, uint64_t r, uint64_t c, int64_t ld) { *l = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{t, r, c, ld}); return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) { delete &L(l); return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t a, const void* p, size_t n) {
  auto set = [&](auto& f) { if (n != sizeof f) return Why(CUBLAS_STATUS_INVALID_VALUE, "attribute size"); std::memcpy(&f, p, n); return CUBLAS_STATUS_SUCCESS; };
  switch (a) { case CUBLASLT_MATRIX_LAYOUT_ORDER: return set(L(l).order); case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return set(L(l).batch); case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return set(L(l).stride); default: return Why(CUBLAS_STATUS_NOT_SUPPORTED, "layout attribute not emulated"); }
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* p) { *p = reinterpret_cast<cublasLtMatmulPreference_t>(new Pref); return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { delete reinterpret_cast<Pref*>(p); return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t a, const void* v, size_t) { if (a == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) std::memcpy(&reinterpret_cast<Pref*>(p)->ws, v, 8); return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t p, int n, cublasLtMatmulHeuristicResult_t* r, int* got) {
  *got = 0;
  if (n < 1) return CUBLAS_STATUS_INVALID_VALUE;
  if (auto s = Check(De(d), L(a), L(b), L(c))) return s;
  std::memset(r, 0, sizeof *r);
  r->workspaceSize = reinterpret_cast<Pref*>(p)->ws >= 1024 ? 1024 : 0;  // so that workspace handling is exercised
  r->state = CUBLAS_STATUS_SUCCESS; *got = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t dd, const void* alpha, const void* A, cublasLtMatrixLayout_t la, const void* B, cublasLtMatrixLayout_t lb, const void* beta, const void* C, cublasLtMatrixLayout_t lc, void* D, cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t*, void* ws, size_t nws, cudaStream_t s) {
  const Desc d = De(dd); const Layout a = L(la), b = L(lb), c = L(lc), o = L(ld);
  if (auto e = Check(d, a, b, o)) return e;
  for (const void* p : {A, B, static_cast<const void*>(D)}) if (!halftone::emulation::IsDevicePointer(p)) return Why(CUBLAS_STATUS_INVALID_VALUE, "operand is no device memory");
  if (nws && !halftone::emulation::IsDevicePointer(ws)) return Why(CUBLAS_STATUS_INVALID_VALUE, "workspace is no device memory");
  const double al = Get(alpha, d.scale, 0), be = Get(beta, d.scale, 0);  // host pointer mode: read at the call
  halftone::emulation::StreamWork(s, [=] {
    auto at = [](const Layout& l, std::uint64_t r, std::uint64_t q, int z) { return std::size_t(z) * std::size_t(l.stride) + (l.order == CUBLASLT_ORDER_COL ? r + q * std::uint64_t(l.ld) : q + r * std::uint64_t(l.ld)); };
    if (nws) std::memset(ws, 0xA5, nws);
    const std::uint64_t k = d.ta == CUBLAS_OP_N ? a.cols : a.rows;
    const bool bias = d.ep == CUBLASLT_EPILOGUE_BIAS || d.ep == CUBLASLT_EPILOGUE_RELU_BIAS || d.ep == CUBLASLT_EPILOGUE_GELU_BIAS;
    for (int z = 0; z < o.batch; ++z) for (std::uint64_t j = 0; j < o.cols; ++j) for (std::uint64_t i = 0; i < o.rows; ++i) {
      float acc = 0;
      for (std::uint64_t q = 0; q < k; ++q) acc += float(Get(A, a.type, d.ta == CUBLAS_OP_N ? at(a, i, q, z) : at(a, q, i, z))) * float(Get(B, b.type, d.tb == CUBLAS_OP_N ? at(b, q, j, z) : at(b, j, q, z)));
      double v = al * acc + (be != 0 ? be * Get(C, c.type, at(c, i, j, z)) : 0);
      if (bias) v += Get(d.bias, d.bias_type == cudaDataType(-1) ? o.type : d.bias_type, i);
      if (d.ep == CUBLASLT_EPILOGUE_RELU || d.ep == CUBLASLT_EPILOGUE_RELU_BIAS) v = std::max(v, 0.0);
      if (d.ep == CUBLASLT_EPILOGUE_GELU || d.ep == CUBLASLT_EPILOGUE_GELU_BIAS) v = 0.5 * v * (1 + std::tanh(0.7978845608 * (v + 0.044715 * v * v * v)));
      Put(D, o.type, at(o, i, j, z), v);
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}
}
