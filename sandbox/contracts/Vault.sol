// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

struct Call {
    address target;
    bytes data;
    uint256 value;
}

/// The account of one intent: it holds the reward on the source chain, and makes the calls of the route on the other.
contract Vault {
    address private immutable portal = msg.sender;

    error CallFailed(Call call, bytes reason);

    receive() external payable {}

    function execute(Call[] calldata calls) external payable {
        require(msg.sender == portal, "Vault: caller must be the portal");
        for (uint256 i = 0; i < calls.length; i++) {
            (bool succeeded, bytes memory reason) = calls[i].target.call{value: calls[i].value}(calls[i].data);
            if (!succeeded) revert CallFailed(calls[i], reason);
        }
    }
}
