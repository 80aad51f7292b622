"""Forms for new accounts and new passwords."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import BaseUserCreationForm

from kbpo.accounts.mail import is_mail_configured
from kbpo.accounts.models import User


class SignUpForm(BaseUserCreationForm):  # type: ignore[type-arg]
    """Form with user name, optional e-mail address, and a password, entered twice."""

    class Meta:
        model = User
        fields = ("username", "email")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = "Name to log in with"
        self.fields["username"].help_text = "Letters, digits and @ . + - _ only."
        self.fields["email"].help_text = "May stay empty, and be added later." + (
            " Without it only an admin can help if you forget your password."
            if is_mail_configured()
            else " This site sends no mail; admins may write to you."
        )
        self.fields["password2"].label = "The password again"
        self.fields["password2"].help_text = ""

    def validate_password_for_user(
        self, user: User, password_field_name: str = "password1"
    ) -> None:
        """Show errors of a password at the first of the two fields."""
        super().validate_password_for_user(user, password_field_name)  # type: ignore[misc]


class NewPassword(forms.Form):
    """Base of forms that set a password: its errors are shown at the first field."""

    def validate_password_for_user(
        self, user: User, password_field_name: str = "new_password1"
    ) -> None:
        """Show errors of a password at the first field, whichever field Django names."""
        super().validate_password_for_user(user, "new_password1")  # type: ignore[misc]


class EmailForm(forms.ModelForm):  # type: ignore[type-arg]
    """Form with an optional e-mail address."""

    class Meta:
        model = User
        fields = ("email",)
