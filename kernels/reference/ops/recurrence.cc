// lstm, gru and their gradients, a step at a time.
#include <cmath>

#include "halftone/kernels/reference/support/nn.h"

namespace halftone::kernels {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Steps in the order of time, rows of the batch, and arrays of one step in the workspace.
class Recurrence {
 public:
  Recurrence(const RefNode& node, int64_t count)
      : steps(node.in(0)[0]),
        batch(node.in(0)[1]),
        hidden(node.in(0)[2] / count),
        features(node.in(1)[1]),
        reverse_(node.attrs.GetBool("reverse")),
        dtype_(node.inputs[0].dtype) {}

  // The position of step i, and that of the step before it.
  int64_t At(int64_t i) const { return reverse_ ? steps - 1 - i : i; }
  // As a value of the op's dtype.
  double Rounded(double x) const {
    uint64_t bits = 0;
    StoreDouble(&bits, dtype_, 0, x);
    return LoadDouble(&bits, dtype_, 0);
  }

  int64_t steps, batch, hidden, features;

 private:
  bool reverse_;
  DType dtype_;
};

// Row `row` of input `port` [rows, depth] times `x`.
double TimesRow(const RefCall& call, int port, int64_t row, int64_t depth, const double* x) {
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k) sum += x[k] * call.Load(port, row * depth + k);
  return sum;
}
// Column `column` of input `port` [rows, columns] times `x`.
double TimesColumn(const RefCall& call, int port, int64_t column, int64_t rows, int64_t columns,
                   const double* x) {
  double sum = 0;
  for (int64_t k = 0; k < rows; ++k) sum += x[k] * call.Load(port, k * columns + column);
  return sum;
}

RefRun MakeLstm(RefNode& node) {
  enum { kX, kW, kH0, kC0, kProjection };
  const Recurrence r(node, 4);
  const bool projects = node.has_in(kProjection);
  const int64_t H = r.hidden, P = r.features;
  node.workspace_bytes = sizeof(double) * (2 * r.batch * P + r.batch * H + H);
  return [r, projects, H, P](const RefCall& call) {
    double* h = call.workspace<double>();
    double* next = h + r.batch * P;
    double* const c = next + r.batch * P;
    double* const m = c + r.batch * H;
    LoadAll(call, kH0, r.batch * P, h);
    LoadAll(call, kC0, r.batch * H, c);
    for (int64_t i = 0; i < r.steps; ++i, std::swap(h, next)) {
      for (int64_t b = 0; b < r.batch; ++b) {
        const int64_t row = r.At(i) * r.batch + b;
        for (int64_t u = 0; u < H; ++u) {
          double gate[4];
          for (int64_t g = 0; g < 4; ++g) {
            const double a = call.Load(kX, row * 4 * H + g * H + u) +
                             TimesRow(call, kW, g * H + u, P, h + b * P);
            gate[g] = g == 2 ? std::tanh(a) : Sigmoid(a);
          }
          double& cell = c[b * H + u];
          cell = gate[1] * cell + gate[0] * gate[2];
          m[u] = r.Rounded(gate[3] * std::tanh(cell));
          call.Store(2, row * H + u, cell);
          for (int64_t g = 0; g < 4; ++g) call.Store(3, row * 4 * H + g * H + u, gate[g]);
        }
        for (int64_t u = 0; u < P; ++u) {
          const double state = projects ? TimesRow(call, kProjection, u, H, m) : m[u];
          next[b * P + u] = r.Rounded(state);
          call.Store(0, row * P + u, state);
        }
      }
    }
    StoreAll(call, 1, r.batch * H, c);
  };
}

RefRun MakeLstmGrad(RefNode& node) {
  enum { kGates, kW, kC0, kC, kDh, kDcn, kProjection };
  const Recurrence r(node, 4);
  const bool projects = node.has_in(kProjection);
  const int64_t H = r.hidden, P = r.features;
  node.workspace_bytes = sizeof(double) * (r.batch * (4 * H + H) + P);
  return [r, projects, H, P](const RefCall& call) {
    double* const dx = call.workspace<double>();  // of the step after this one
    double* const dc = dx + r.batch * 4 * H;
    double* const dh = dc + r.batch * H;
    LoadAll(call, kDcn, r.batch * H, dc);
    std::fill_n(dx, r.batch * 4 * H, 0.0);
    for (int64_t i = r.steps - 1; i >= 0; --i) {
      for (int64_t b = 0; b < r.batch; ++b) {
        const int64_t row = r.At(i) * r.batch + b;
        double* const d = dx + b * 4 * H;
        for (int64_t u = 0; u < P; ++u) {
          const double sum = call.Load(kDh, row * P + u) + TimesColumn(call, kW, u, 4 * H, P, d);
          dh[u] = projects ? r.Rounded(sum) : sum;
          call.Store(3, row * P + u, sum);
        }
        for (int64_t u = 0; u < H; ++u) {
          const auto gate = [&](int64_t g) { return call.Load(kGates, row * 4 * H + g * H + u); };
          const double in = gate(0), f = gate(1), g = gate(2), o = gate(3);
          const double tanh_c = std::tanh(call.Load(kC, row * H + u));
          const double before = i == 0 ? call.Load(kC0, b * H + u)
                                       : call.Load(kC, (r.At(i - 1) * r.batch + b) * H + u);
          const double dm = projects ? TimesColumn(call, kProjection, u, P, H, dh) : dh[u];
          double& cell = dc[b * H + u];
          cell += dm * o * (1 - tanh_c * tanh_c);
          const double slopes[4] = {cell * g * in * (1 - in), cell * before * f * (1 - f),
                                    cell * in * (1 - g * g), dm * tanh_c * o * (1 - o)};
          cell *= f;
          for (int64_t k = 0; k < 4; ++k) {
            d[k * H + u] = r.Rounded(slopes[k]);
            call.Store(0, row * 4 * H + k * H + u, slopes[k]);
          }
        }
      }
    }
    for (int64_t b = 0; b < r.batch; ++b) {
      for (int64_t u = 0; u < P; ++u) {
        call.Store(1, b * P + u, TimesColumn(call, kW, u, 4 * H, P, dx + b * 4 * H));
      }
    }
    StoreAll(call, 2, r.batch * H, dc);
  };
}

RefRun MakeGru(RefNode& node) {
  enum { kX, kW, kH0, kBias };
  const Recurrence r(node, 3);
  const bool biased = node.has_in(kBias);
  const int64_t H = r.hidden;
  node.workspace_bytes = sizeof(double) * (3 * r.batch * H);
  return [r, biased, H](const RefCall& call) {
    double* h = call.workspace<double>();  // as w multiplies it
    double* next = h + r.batch * H;
    double* const state = next + r.batch * H;
    LoadAll(call, kH0, r.batch * H, h);
    LoadAll(call, kH0, r.batch * H, state);
    for (int64_t i = 0; i < r.steps; ++i, std::swap(h, next)) {
      for (int64_t b = 0; b < r.batch; ++b) {
        const int64_t row = r.At(i) * r.batch + b;
        for (int64_t u = 0; u < H; ++u) {
          double x[3], s[3];
          for (int64_t g = 0; g < 3; ++g) {
            x[g] = call.Load(kX, row * 3 * H + g * H + u);
            s[g] = TimesRow(call, kW, g * H + u, H, h + b * H) +
                   (biased ? call.Load(kBias, g * H + u) : 0);
          }
          const double reset = Sigmoid(x[0] + s[0]), z = Sigmoid(x[1] + s[1]);
          const double n = std::tanh(x[2] + reset * s[2]);
          double& now = state[b * H + u];
          now = (1 - z) * n + z * now;
          next[b * H + u] = r.Rounded(now);
          call.Store(0, row * H + u, now);
          call.Store(1, row * 3 * H + u, reset);
          call.Store(1, row * 3 * H + H + u, z);
          call.Store(1, row * 3 * H + 2 * H + u, n);
          call.Store(2, row * H + u, s[2]);
        }
      }
    }
  };
}

RefRun MakeGruGrad(RefNode& node) {
  enum { kGates, kW, kH0, kH, kShare, kDh };
  const Recurrence r(node, 3);
  const int64_t H = r.hidden;
  node.workspace_bytes = sizeof(double) * (r.batch * (3 * H + H) + H);
  return [r, H](const RefCall& call) {
    double* const ds = call.workspace<double>();  // of the step after this one
    double* const kept = ds + r.batch * 3 * H;    // e z of it
    double* const e = kept + r.batch * H;
    std::fill_n(ds, r.batch * 4 * H, 0.0);
    for (int64_t i = r.steps - 1; i >= 0; --i) {
      for (int64_t b = 0; b < r.batch; ++b) {
        const int64_t row = r.At(i) * r.batch + b;
        double* const d = ds + b * 3 * H;
        for (int64_t u = 0; u < H; ++u) {
          e[u] =
              call.Load(kDh, row * H + u) + kept[b * H + u] + TimesColumn(call, kW, u, 3 * H, H, d);
        }
        for (int64_t u = 0; u < H; ++u) {
          const double reset = call.Load(kGates, row * 3 * H + u);
          const double z = call.Load(kGates, row * 3 * H + H + u);
          const double n = call.Load(kGates, row * 3 * H + 2 * H + u);
          const double before = i == 0 ? call.Load(kH0, b * H + u)
                                       : call.Load(kH, (r.At(i - 1) * r.batch + b) * H + u);
          const double dn = e[u] * (1 - z) * (1 - n * n);
          const double dr = dn * call.Load(kShare, row * H + u) * reset * (1 - reset);
          const double dz = e[u] * (before - n) * z * (1 - z);
          kept[b * H + u] = e[u] * z;
          const double dx[3] = {dr, dz, dn}, of_s[3] = {dr, dz, dn * reset};
          for (int64_t g = 0; g < 3; ++g) {
            d[g * H + u] = r.Rounded(of_s[g]);
            call.Store(0, row * 3 * H + g * H + u, dx[g]);
            call.Store(2, row * 3 * H + g * H + u, of_s[g]);
          }
        }
      }
    }
    for (int64_t b = 0; b < r.batch; ++b) {
      for (int64_t u = 0; u < H; ++u) {
        call.Store(1, b * H + u,
                   kept[b * H + u] + TimesColumn(call, kW, u, 3 * H, H, ds + b * 3 * H));
      }
    }
  };
}

}  // namespace

void Register_reference_recurrence(KernelRegistry& r) {
  AddReference(r, "lstm", ir::kFloats, MakeLstm);
  AddReference(r, "lstm_grad", ir::kFloats, MakeLstmGrad);
  AddReference(r, "gru", ir::kFloats, MakeGru);
  AddReference(r, "gru_grad", ir::kFloats, MakeGruGrad);
}

}  // namespace halftone::kernels
