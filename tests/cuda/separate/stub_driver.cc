// A libcuda.so.1 without a device, for tests of what cuDNN plans: it takes the code of engines that the
// library compiles at run time, and keeps nothing. To the CUDA runtime it says that there is no device. Types are
// those that C passes alike, since cuda.h gives some of these names another suffix.

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kNoDevice = 100, kNotSupported = 801;
char some_handle;

}  // namespace

extern "C" {

int cuInit(unsigned) { return kNoDevice; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = 0;
  return kNoDevice;
}
int cuGetErrorName(int, const char** text) {
  *text = "CUDA_ERROR_OF_THE_STUB_DRIVER";
  return kSuccess;
}
int cuGetErrorString(int, const char** text) {
  *text = "error of the stub driver";
  return kSuccess;
}

int cuLibraryLoadData(void** library, const void* code, void*, void*, unsigned, void*, void*,
                      unsigned) {
  if (code == nullptr) return kInvalidValue;
  *library = &some_handle;
  return kSuccess;
}
int cuLibraryGetKernel(void** kernel, void*, const char*) {
  *kernel = &some_handle;
  return kSuccess;
}
int cuLibraryUnload(void*) { return kSuccess; }

// cuDNN looks these up beside the others, and does without all if one is missing.
#define NOT_SUPPORTED(name) \
  int name() { return kNotSupported; }
NOT_SUPPORTED(cuCtxGetCurrent)
NOT_SUPPORTED(cuCtxGetLimit)
NOT_SUPPORTED(cuCtxPopCurrent)
NOT_SUPPORTED(cuCtxPushCurrent)
NOT_SUPPORTED(cuDeviceGet)
NOT_SUPPORTED(cuKernelGetAttribute)
NOT_SUPPORTED(cuKernelSetAttribute)
NOT_SUPPORTED(cuLaunchCooperativeKernel)
NOT_SUPPORTED(cuLaunchKernel)
NOT_SUPPORTED(cuLaunchKernelEx)
NOT_SUPPORTED(cuLibraryLoadFromFile)
NOT_SUPPORTED(cuLinkAddData)
NOT_SUPPORTED(cuLinkComplete)
NOT_SUPPORTED(cuLinkCreate)
NOT_SUPPORTED(cuLinkDestroy)
NOT_SUPPORTED(cuOccupancyMaxPotentialClusterSize)
NOT_SUPPORTED(cuStreamGetCtx)

}  // extern "C"
