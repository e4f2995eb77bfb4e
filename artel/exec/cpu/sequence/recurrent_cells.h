// One position of an LSTM or a GRU: element-wise functions of one row of `units` elements.
#pragma once

#include <cstdint>

namespace artel::kernels {

// Rows of gates hold `units` values of each gate, one gate after another. `memory` holds an
// LSTM's cells, or for a GRU the state's part of its candidate.
struct CellForward {
  int64_t units;
  const float* projected;  // gates, from the inputs
  const float* hidden;     // gates, from the state before
  const float* before;     // LSTM: cells before; GRU: state before
  float* gates;            // activated; may be `projected`
  float* memory;
  float* state;
};
void lstm_forward(const CellForward& cell);
void gru_forward(const CellForward& cell);

struct CellBackward {
  int64_t units;
  const float* gates;   // as forward has left them
  const float* memory;  // the same
  const float* before;  // as for forward
  const float* dy;      // of the state, from the position's own output
  float* dstate;        // in: of the state, from later positions; out: directly of the state before
  float* dcells;        // LSTM: the same of the cells
  float* dprojected;    // may be `gates`
  float* dhidden;       // GRU: of the gates from the state before; may not be `gates`
};
void lstm_backward(const CellBackward& cell);
void gru_backward(const CellBackward& cell);

}  // namespace artel::kernels
