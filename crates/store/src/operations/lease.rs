//! Changes by the holder of a lease (of a run or of a fetch) to its task.

use kinora_contract::lifecycle::Refused;

use crate::LeaseLost;
use crate::backend::{Needs, Operation, Transaction, TransactionFault as _};
use crate::lease::{LeaseAction, LeasedChange};

impl Operation for LeasedChange {
    type Output = Result<(), LeaseLost>;

    fn needs(&self, needs: &mut Needs) {
        needs.tasks.insert(self.task);
    }

    /// A lease must be renewed even while the runtime is blocked.
    fn is_urgent(&self) -> bool {
        matches!(self.action, LeaseAction::Renew { .. })
    }

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<Self::Output, T::Fault> {
        let Some(before) = tx.find(self.task)? else {
            return Ok(Err(LeaseLost::Withdrawn));
        };
        let event = self.action.at(tx.now());
        match tx.apply(&before, event)? {
            Ok(_) => Ok(Ok(())),
            Err(Refused::LeaseLost(lost)) => Ok(Err(lost)),
            Err(refused) => Err(T::Fault::corrupt(format!("{}: {refused}", self.task))),
        }
    }
}
